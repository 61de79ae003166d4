"""The figures and tables of the paper's half on images."""

from unmix.papers.base import FigureEntry


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
