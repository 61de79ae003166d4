"""Feature purification: clean training mixes all features a little, adversarial training unmixes.

`contents` what it states, `claims` what is judged, `findings` what came out, `settings` the
experiments, `measures` the measurements, `figures` the pictures. Importing this package imports no
torch.
"""

from unmix.papers.base import Contender, FigureEntry, Paper
from unmix.papers.purification.claims import CLAIMS
from unmix.papers.purification.claims.base import CLEAN, DEEP, PURIFIED
from unmix.papers.purification.contents import CONTENTS
from unmix.papers.purification.findings import FINDINGS
from unmix.papers.purification.story import STORY

BIBTEX = """@inproceedings{allenzhu2022purification,
  title     = {Feature Purification: How Adversarial Training Performs Robust Deep Learning},
  author    = {Allen-Zhu, Zeyuan and Li, Yuanzhi},
  booktitle = {IEEE Symposium on Foundations of Computer Science (FOCS)},
  year      = {2022}
}"""

FIGURES = (
    FigureEntry("3", "Linear and thresholded response", "responses"),
    FigureEntry("2", "Cosines before, after and between", "cosines", (PURIFIED,)),
    FigureEntry("4", "Inputs rebuilt from few features", "rebuilt", ("side",)),
    FigureEntry("7", "Perturbations before and after", "perturbations", ("side",)),
    FigureEntry("8", "Lottery tickets are won", "tickets", (CLEAN,)),
    FigureEntry("9", "Pure and dense parts while training", "plane", ("side", "scratch", "pure")),
    FigureEntry("12", "Sparse reconstruction", "reconstruction", ("side",)),
    FigureEntry("radii", "Radii beside the oracle's", "radii", (CLEAN, PURIFIED), place="Thm 5.3"),
    FigureEntry("1", "AlexNet's first layer", why_not=DEEP),
    FigureEntry("5", "Activation sparsity of WRN-28-10", why_not=DEEP),
    FigureEntry("6", "Deep features of ResNet", why_not=DEEP),
    FigureEntry("10", "Deep features, clean and robust", why_not=DEEP),
    FigureEntry("11", "Features layer by layer", why_not=DEEP),
    FigureEntry("13", "Attackers compared", why_not=DEEP),
)

CONTENDERS = tuple(
    Contender(title, setting, certified="brackets:certified", best="brackets:best")
    for title, setting in (
        # The net that adversarial training starts from is no run of its own; "longer" stays clean.
        ("symmetric net, clean training", "longer"),
        ("symmetric net, purified", "side"),
        ("symmetric net, adversarial from the start", "scratch"),
        ("symmetric net on the pure dictionary", "pure"),
    )
)

PAPER = Paper(
    name="purification",
    title="Feature Purification: How Adversarial Training Performs Robust Deep Learning",
    authors="Zeyuan Allen-Zhu, Yuanzhi Li",
    bibtex=BIBTEX,
    claims=CLAIMS,
    figures=FIGURES,
    package="unmix.papers.purification",
    contents=CONTENTS,
    findings=FINDINGS,
    contenders=CONTENDERS,
    story=STORY,
)
