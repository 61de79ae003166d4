"""pReLU: a polynomial ReLU makes gradient flow learn subclasses instead of their averages.

`claims` what is judged, `settings` the experiments, `measures` the measurements, `figures` the
pictures, `predict` closed forms. Importing this package imports no torch.
"""

from unmix.papers.base import FigureEntry, Paper
from unmix.papers.prelu import images
from unmix.papers.prelu.claims import CLAIMS
from unmix.papers.prelu.contents import CONTENTS
from unmix.papers.prelu.findings import FINDINGS
from unmix.papers.prelu.predictions import CONTENDERS, PREDICTIONS
from unmix.papers.prelu.story import STORY

BIBTEX = """@inproceedings{min2024implicit,
  title     = {Can Implicit Bias Imply Adversarial Robustness?},
  author    = {Min, Hancheng and Vidal, Ren{\\'e}},
  booktitle = {International Conference on Machine Learning},
  year      = {2024}
}"""

SGD = ("sgd-p=1", "sgd-p=3")
MORE = ("K20-p=1", "K20-p=3")
SPHERE = ("sphere-p=1", "sphere-p=3", "sphere-aligned-p=1", "sphere-aligned-p=3")
ALPHAS = ("0.01", "0.05", "0.2", "0.3")
NOISE = tuple(
    s for p in (1, 3) for s in (f"mean-p={p}", *(f"noise-p={p},alpha={a}" for a in ALPHAS))
)
MORE_NOISE = tuple(f"K20-p={p},alpha={a}" for p in (1, 3) for a in ("0.01", "0.3"))
CLOSED = tuple(f"{f}-K{k},alpha={a}" for f in ("F", "F3") for k in (10, 20) for a in ("0.1", "3"))
PREDICTED = (
    "balanced-p=3",
    "balanced-p=6",
    "reduced-p=1",
    "reduced-p=3",
    "even-p=1",
)

SHELLS = ("shells-p=1", "shells-p=2", "shells-p=3")

FIGURES = (
    FigureEntry("1", "Neurons on the sphere: averages or subclasses", "sphere", SPHERE),
    FigureEntry("2a", "Distance to F and F^(p) against the noise", "distances", (*NOISE, *SGD)),
    FigureEntry("2b", "Contributions of the neurons", "contributions", SGD),
    FigureEntry("2c", "Cosines with class means and subclasses (2c, 2d)", "matrices", SGD),
    FigureEntry("2e", "Robust accuracy against radius, drawn again", "trained", SGD),
    FigureEntry(
        "5a",
        "Distance with twenty subclasses",
        "more_distances",
        (*MORE, *MORE_NOISE, *NOISE),
    ),
    FigureEntry("5b", "Contributions with twenty subclasses", "more_contributions", MORE),
    FigureEntry("5c", "Cosines with twenty subclasses (5c, 5d)", "more_matrices", MORE),
    FigureEntry("5e", "Robust accuracy with twenty subclasses", "more", MORE),
    FigureEntry(
        "critical", "Critical radii of F and F^(p)", "critical", CLOSED, place="Thms 1 and 3"
    ),
    FigureEntry(
        "predictors",
        "Closed forms beside measurements",
        "predictors",
        PREDICTED,
        place="Conjecture 1",
    ),
    FigureEntry("7", "Alignment bias of a neuron between two centres", "bias", SHELLS),
    *images.FIGURES,
)

PAPER = Paper(
    name="prelu",
    title="Can Implicit Bias Imply Adversarial Robustness?",
    authors="Hancheng Min, René Vidal",
    bibtex=BIBTEX,
    claims=CLAIMS,
    figures=FIGURES,
    package="unmix.papers.prelu",
    contents=CONTENTS,
    findings=(*FINDINGS, *images.FINDINGS),
    predictions=PREDICTIONS,
    contenders=CONTENDERS,
    story=STORY,
    datasets=("mnist", "fashion-mnist", "cifar10"),
)
