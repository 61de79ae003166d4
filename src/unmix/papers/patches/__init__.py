"""Robust and non-robust features in patch data: what standard and adversarial training learn.

`claims` what is judged, `settings` the experiments and readings, `measures` the measurements,
`figures` the pictures. Importing this package imports no torch.
"""

from unmix.papers.base import Contender, FigureEntry, Paper, Prediction
from unmix.papers.patches.claims import CLAIMS
from unmix.papers.patches.contents import CONTENTS
from unmix.papers.patches.findings import FINDINGS
from unmix.papers.patches.story import STORY

BIBTEX = """@inproceedings{li2025adversarial,
  title     = {Adversarial Training Can Provably Improve Robustness: Theoretical Analysis of
               Feature Learning Process Under Structured Data},
  author    = {Li, Binghui and Li, Yuanzhi},
  booktitle = {International Conference on Learning Representations},
  year      = {2025}
}"""

CURVES = (
    "std-curve",
    "adv-mean-curve",
    "adv-margin-curve",
    "minimum-robust-curve",
    "minimum-non-robust-curve",
)
PHOTOS = ("mnist-std", "mnist-adv", "cifar10-std", "cifar10-adv")
LADDERS = ("quiet-eta*", "quiet-step*", "quiet-alpha*", "quiet-eps*")

FIGURES = (
    FigureEntry("2", "A point, its feature-only versions and its attack", "picture", ("std",)),
    FigureEntry("3", "Simulations, literally as set up", "simulation", ("std", "adv")),
    FigureEntry(
        "3-nearest", "Simulations, the reading nearest to the text", "nearest", ("std", "adv-mean")
    ),
    FigureEntry(
        "threats",
        "The same nets under different threats",
        "threats",
        ("std", "adv", "adv-mean", "adv-margin"),
        place="Thm 4.4",
    ),
    FigureEntry("radii", "Robust accuracy on the whole ball", "radii", CURVES, place="Thm 4.4"),
    FigureEntry(
        "races", "Who wins the race is decided at the start", "races", ("races",), place="Lemma B.2"
    ),
    FigureEntry(
        "recursion",
        "The recursion of A and B beside the training",
        "recursion",
        ("adv-mean", "quiet-adv", "recursion-adv"),
        place="Lemma 5.2",
    ),
    FigureEntry("scaling", "Times and ends of the phases", "scaling", LADDERS, place="Lemma D.24"),
    FigureEntry("1", "Features of an elephant and a cat", why_not="a picture of ImageNet images"),
    FigureEntry("4", "Feature learning on MNIST and CIFAR-10", "curves", PHOTOS),
    FigureEntry(
        "5",
        "Feature learning on MNIST, CIFAR-10 and SVHN",
        "more_curves",
        (*PHOTOS, "svhn-std", "svhn-adv"),
    ),
    FigureEntry(
        "representatives",
        "Images of robust and of non-robust features alone",
        "representatives",
        PHOTOS,
        place="section 6.2",
    ),
    FigureEntry("table-1", "Feature learning on images", "table_1", PHOTOS, place="Table 1"),
    FigureEntry(
        "table-2",
        "Attacks by robust and by non-robust features",
        "table_2",
        PHOTOS[2:],
        place="Table 2",
    ),
    FigureEntry(
        "budgets", "Table 1 and the length of the search", "budgets", PHOTOS, place="Table 1"
    ),
)

PREDICTIONS = (
    Prediction("sum of B^q where B stops", "adv-mean", "laws:stopping"),
    Prediction("l_inf radius of w = gamma u", "minimum-robust-curve", "laws:radius"),
    Prediction("l_inf radius of w = gamma v", "minimum-non-robust-curve", "laws:radius"),
)

CONTENDERS = tuple(
    Contender(title, setting, also, certified="robust:certified", best="robust:best")
    for title, setting, also in (
        ("patch CNN, standard training", "std-curve", ()),
        ("patch CNN, adversarial training as printed", "adv-curve", ()),
        ("patch CNN, adversarial, -F_y of the batch mean", "adv-mean-curve", ()),
        ("patch CNN, adversarial, margins of the batch mean", "adv-margin-curve", ("adv-margin",)),
        ("non-robust minimum (Prop 3.1), built", "minimum-non-robust", ()),
        ("robust minimum (Prop 3.2), built", "minimum-robust", ()),
    )
)

PAPER = Paper(
    name="patches",
    title="Adversarial Training Can Provably Improve Robustness: Theoretical Analysis of Feature "
    "Learning Process Under Structured Data",
    authors="Binghui Li, Yuanzhi Li",
    bibtex=BIBTEX,
    claims=CLAIMS,
    figures=FIGURES,
    package="unmix.papers.patches",
    contents=CONTENTS,
    findings=FINDINGS,
    predictions=PREDICTIONS,
    contenders=CONTENDERS,
    story=STORY,
    datasets=("mnist", "cifar10", "svhn"),
)
