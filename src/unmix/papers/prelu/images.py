"""The paper's half on images: its figures and tables, and where text and code differ."""

from unmix.papers.base import FigureEntry
from unmix.papers.contents import Finding


def _attacked(task: str, *plans: str) -> tuple[str, ...]:
    """The settings of a task, and those of its other attacks."""
    return tuple(f"{task}-p={p}{plan}" for plan in ("", *plans) for p in (1, 2, 3, 4))


FIGURES = (
    FigureEntry("3", "Parity of MNIST digits", "parity", _attacked("parity", ",apgd")),
    FigureEntry("4", "Frozen features: CIFAR-10 for Caltech256", "frozen", _attacked("cifar2")),
    FigureEntry("6", "MNIST digits", "digits", _attacked("digits", ",apgd")),
    FigureEntry(
        "table-1",
        "Robust accuracy in three norms",
        "table",
        _attacked("digits", ",l2", ",l1"),
        place="Table 1",
    ),
    FigureEntry(
        "fashion",
        "The same table on Fashion-MNIST",
        "fashion",
        _attacked("fashion", ",l2", ",l1"),
        place="Table 1",
    ),
)

FINDINGS = (
    Finding(
        "Which images, centred how",
        "The text says that images are centred and normalised, and speaks of MNIST's test set. The "
        "code centres, leaves the length of an image alone for p = 1, and divides the p-th power "
        "by its length to the power p - 1; its test images are the last 10 000 of the training "
        "file. The code's reading is the default; the text's is run beside it for p = 1 and 4.",
        ("reading-unit-p=1", "reading-unit-p=4", "reading-official-p=1", "reading-official-p=4"),
    ),
    Finding(
        "One attack is not all attacks",
        "Table 1 was made with APGD on the cross-entropy. A minimum-norm attack on the margin "
        "finds more; how much is measured on the same images, and so is what it misses itself.",
        ("papers-attack-p=1", "papers-attack-p=4", "full-suite-p=1", "full-suite-p=4"),
    ),
    Finding(
        "Digits are no orthogonal subclasses",
        "Centred images of two digits are uncorrelated in the mean, as the text says. But images "
        "of one digit are not all positively correlated: one pair in five is not.",
        ("fig-3a-other", "fig-3a-same"),
    ),
)
