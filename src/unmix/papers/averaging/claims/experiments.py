"""Section 6 and appendix E.1: the synthetic experiments.

"Feature averaging happens" is read as an averaging index (mean on-class cosine over that of a
perfect average) of at least 0.9; "is necessary" as an index below 0.9 without the condition.
"""

from unmix.claims import Claim, Source
from unmix.papers.averaging.claims.base import PAPER, claim, within

HAPPENS = within(low=0.9)
BREAKS = within(high=0.9)

PERSISTS = {
    "n=10000": ("samples do not mitigate it: n = 10000", "Fig 5b"),
    "n=50000": ("samples do not mitigate it: n = 50000", "Fig 5c"),
    "eta=0.0001": ("learning rate 0.0001", "Fig 6c"),
    "init=0.0001": ("initial scale 0.0001", "Fig 7b"),
    "snr=0.5,alpha": ("SNR 0.5 (alpha varied)", "Fig 8a"),
    "snr=0.5,sigma": ("SNR 0.5 (sigma varied)", "Fig 8a"),
    "snr=2,alpha": ("SNR 2 (alpha varied)", "Fig 8c"),
    "snr=2,sigma": ("SNR 2 (sigma varied)", "Fig 8c"),
    "cos=1e-05": ("common cosine 0.00001", "Fig 9a"),
    "cos=0.001": ("common cosine 0.001", "Fig 9b"),
    "cos=0.09": ("common cosine 0.09", "Fig 9c"),
}

CLIP = "needs embeddings of CLIP's ViT-B-32, which no source here has"
RESNET = "needs ResNet18 nets trained on images for 100 (MNIST) or 200 epochs (CIFAR-10)"
REAL_IMAGES = {
    "fig-2c": ("CIFAR-10 embeddings, 2 labels: neurons average", "Fig 2c", CLIP),
    "fig-2d": ("CIFAR-10 embeddings, 10 labels: neurons decouple", "Fig 2d", CLIP),
    "fig-3-middle": ("MNIST: 10 labels are more robust than 2", "Fig 3 middle", RESNET),
    "fig-3-right": ("CIFAR-10: 10 labels are more robust than 2", "Fig 3 right", RESNET),
    "fig-10": ("CIFAR-10 embeddings of two classes are nearly orthogonal", "Fig 10", CLIP),
}

CLAIMS = (
    claim(
        "fig-2a",
        "Trained on 2 labels, every neuron has larger cosines with all centres of its label",
        "Fig 2a",
        "experiment",
        within(low=0.3),
        "learned:own_minus_off",
        "binary",
        reading="smallest own cosine minus largest other one",
    ),
    claim(
        "fig-2a-average",
        "Trained on 2 labels, neurons are averages of their label's centres",
        "Fig 2a",
        "experiment",
        HAPPENS,
        "learned:averaging_index",
        "binary",
    ),
    claim(
        "fig-2b",
        "Trained on 10 labels, the cosine matrix is nearly diagonal",
        "Fig 2b",
        "experiment",
        within(low=0.9),
        "learned:own_minus_off",
        "k-class",
        reading="h = 1, the natural reading of width 10; h is not stated",
    ),
    claim(
        "fig-2b-h3",
        "The same with h = 3",
        "Fig 2b",
        "experiment",
        within(low=0.9),
        "learned:own_minus_off",
        "k-class-h3",
    ),
    claim(
        "fig-2b-h5",
        "The same with h = 5",
        "Fig 2b",
        "experiment",
        within(low=0.9),
        "learned:own_minus_off",
        "k-class-h5",
    ),
    claim(
        "fig-3-left",
        "At every radius the 10-label net is at least as robust as the 2-label net",
        "Fig 3 left",
        "experiment",
        within(low=0.0),
        "robustness:curve_gap",
        *("binary", "k-class"),
        reading="union of attacks; smallest lead over the radii",
    ),
    claim(
        "fig-3-left-area",
        "On average over the radii up to 0.8 sqrt(d) it is far more robust",
        "Fig 3 left",
        "experiment",
        within(low=0.2),
        "robustness:curve_area",
        *("binary", "k-class"),
    ),
    *(
        claim(
            f"e1-{setting}",
            f"Feature averaging happens: {what}",
            f"E.1, {place}",
            "experiment",
            HAPPENS,
            "learned:averaging_index",
            setting,
        )
        for setting, (what, place) in PERSISTS.items()
    ),
    claim(
        "e1-eta-necessary",
        "A small learning rate is necessary: at 0.01 averaging breaks",
        "E.1, Fig 6a",
        "experiment",
        BREAKS,
        "learned:averaging_index",
        "eta=0.01",
    ),
    claim(
        "e1-init-necessary",
        "A small initialisation is necessary: at 0.001 averaging breaks",
        "E.1, Fig 7a",
        "experiment",
        BREAKS,
        "learned:averaging_index",
        "init=0.001",
        reading="0.001 as a standard deviation; as a variance the baseline itself would break",
    ),
    *(
        claim(
            f"e1-eta-time-{eta}",
            f"Only eta T matters: averages at eta = {eta}, T = {steps} equal the baseline's",
            "E.1, Fig 6",
            "beyond",
            within(0.99, 1.01),
            "learned:index_ratio",
            *(f"eta={eta},T={steps}", "binary"),
            reading="ratio of averaging indices",
        )
        for eta, steps in (("0.01", 10), ("0.0001", 1000))
    ),
    *(
        Claim(name, statement, Source(PAPER, place), "experiment", why_not=why)
        for name, (statement, place, why) in REAL_IMAGES.items()
    ),
)
