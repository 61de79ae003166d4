"""Section 6.2 and appendix A: deep nets on images, at reduced size.

The orderings of Tables 1 and 2 and of Figs 4 and 5, data set by data set. What the text leaves open
about D_NR and D_R is a reading: Ilyas et al.'s search ("gradient", whom the text follows) decides,
another one ("adam") stands beside it.
"""

from __future__ import annotations

from unmix.claims import Claim
from unmix.papers.patches.claims.base import HARDLY_ANY, claim, within

TITLES = {"mnist": "MNIST", "cifar10": "CIFAR-10", "svhn": "SVHN"}
# Cells of Table 1 that the text compares.
ORDER = {
    "std": "standard training: FL_NR > FL_R (difference)",
    "adv": "adversarial training: FL_R > FL_NR (difference)",
    "non-robust": "FL_NR: standard above adversarial training (difference)",
    "robust": "FL_R: adversarial above standard training (difference)",
}
SEARCH = {
    "gradient": "200 steps of length 0.1 down the gradient from an image of another class",
    "adam": "100 steps of Adam, 0.02 each, from an image of another class",
}
APGD = "APGD on the cross-entropy, 100 steps from one start, 50 images a seed"
NEXT = "references are the nets of the next seed"
POSITIVE = within(low=0.0)
TABLE_2 = ("cat-dog", "dog-cat", "automobile-airplane", "airplane-automobile")


def pair(dataset: str) -> tuple[str, str]:
    """The settings of both trainings."""
    return f"{dataset}-std", f"{dataset}-adv"


def _orders(dataset: str, reading: str) -> tuple[Claim, ...]:
    """The four orderings of Table 1."""
    end = "" if reading == "gradient" else f"-{reading}"
    return tuple(
        claim(
            f"table-1-{cells}-{dataset}{end}",
            f"{TITLES[dataset]}, {statement}",
            "Table 1, section 6.2",
            "experiment",
            POSITIVE,
            f"images:ordering of {reading}:{cells}",
            *pair(dataset),
            reading=f"{SEARCH[reading]}; {NEXT}",
        )
        for cells, statement in ORDER.items()
    )


def _accuracies(dataset: str) -> tuple[Claim, ...]:
    """The other columns of Table 1."""
    title, both = TITLES[dataset], pair(dataset)
    return (
        claim(
            f"table-1-clean-{dataset}",
            f"{title}: standard training has the higher test accuracy (difference)",
            "Table 1",
            "experiment",
            POSITIVE,
            "images:clean_gap",
            *both,
        ),
        claim(
            f"table-1-robust-accuracy-std-{dataset}",
            f"{title}, standard training: robust test accuracy is zero",
            "Table 1",
            "experiment",
            HARDLY_ANY,
            "images:robust",
            both[0],
            reading=APGD,
        ),
        claim(
            f"table-1-robust-accuracy-adv-{dataset}",
            f"{title}: adversarial training has the higher robust accuracy (difference)",
            "Table 1",
            "experiment",
            POSITIVE,
            "images:robust_gain",
            *both,
            reading=APGD,
        ),
    )


def _curves(dataset: str) -> tuple[Claim, ...]:
    """What Figs 4 and 5 show over the training."""
    title, both, reading = TITLES[dataset], pair(dataset), f"{SEARCH['gradient']}; {NEXT}"
    wanted = {
        "std": "standard training: FL_NR stays above FL_R (mean difference over the epochs)",
        "adv": "adversarial training: FL_R stays above FL_NR (mean difference over the epochs)",
    }
    return (
        *(
            claim(
                f"fig-4-{cells}-{dataset}",
                f"{title}, {statement}",
                "Figs 4 and 5",
                "experiment",
                POSITIVE,
                f"images:during of gradient:{cells}",
                *both,
                reading=reading,
            )
            for cells, statement in wanted.items()
        ),
        claim(
            f"fig-4-strengthened-{dataset}",
            f"{title}, adversarial training: FL_R grows after the first epoch (difference)",
            "Figs 4 and 5",
            "experiment",
            POSITIVE,
            "images:risen of gradient",
            *both,
            reading=reading,
        ),
    )


def _lossy(dataset: str) -> Claim:
    return claim(
        f"representatives-lossy-{dataset}",
        f"{TITLES[dataset]}: representatives are not the images themselves (distance kept)",
        "section 6.2",
        "beyond",
        within(low=0.1),
        "images:lost of gradient",
        *pair(dataset),
        reading="where a representation is as wide as the image, its inversion gives the image",
    )


def _victim(which: str, victim: str, dataset: str, title: str) -> Claim:
    first, second = ("NRF", "RF") if victim == "std" else ("RF", "NRF")
    kind = "standard" if victim == "std" else "adversarial"
    beyond = dataset != "cifar10"
    return claim(
        f"table-2-{victim}-{which if not beyond else dataset}",
        f"{title}: {first}-PGD fools the {kind} net more often than {second}-PGD (difference)",
        "Table 2, on MNIST" if beyond else "Table 2",
        "beyond" if beyond else "experiment",
        POSITIVE,
        f"images:targeted of {which}:{victim}",
        *pair(dataset),
        reading=f"50 sign steps from the image; {NEXT}",
    )


def _lift(dataset: str) -> Claim:
    return claim(
        f"table-2-lift-{dataset}",
        f"{TITLES[dataset]}: NRF-PGD adds to what standard nets confuse anyway (least over pairs)",
        "Table 2",
        "beyond",
        POSITIVE,
        "images:lift of NRF",
        *pair(dataset),
        reading="the table gives no rate of confusion without an attack",
    )


CLAIMS = (
    *(made for d in TITLES for made in _orders(d, "gradient")),
    *(made for d in ("mnist", "cifar10") for made in _orders(d, "adam")),
    *(made for d in TITLES for made in _accuracies(d)),
    *(made for d in TITLES for made in _curves(d)),
    *(_victim(p, v, "cifar10", p.replace("-", " to ")) for v in ("std", "adv") for p in TABLE_2),
    *(_victim("every", v, "mnist", "MNIST, least over four pairs") for v in ("std", "adv")),
    *(_lossy(d) for d in ("mnist", "cifar10")),
    *(_lift(d) for d in ("mnist", "cifar10")),
)
