"""Features that overlap: section 2 says that the results extend to incoherent dictionaries."""

from unmix.papers.purification.claims.base import claim, within

PLACE = "section 2"
AT = "d = 100, D = 150 unit features, overlaps of size 0.058, l2 radius 0.15"
BOTH, OTHERS = ("frame-clean", "frame"), ("side-clean", "side")

CLAIMS = (
    claim(
        "incoherent-accuracy",
        "With features that overlap, clean training is as accurate",
        PLACE,
        "law",
        within(low=0.95),
        "robust:clean_accuracy",
        "frame-clean",
        reading=f"the interval of thm-5.1b; {AT}",
    ),
    claim(
        "incoherent-nu",
        "and mixes as much of all other features into each neuron",
        PLACE,
        "law",
        within(0.75, 1.33),
        "trends:ratio of dense-mixture.nu_over_law",
        *(BOTH[0], OTHERS[0]),
        reading=f"nu over kappa/D, beside that of orthonormal features; u_i = M^T w_i; {AT}",
    ),
    claim(
        "incoherent-universal",
        "-y M w* fools it as orthonormal features are fooled",
        PLACE,
        "law",
        within(high=1.1),
        "trends:ratio of robust:universal",
        *(BOTH[0], OTHERS[0]),
        reading=f"accuracy under it, beside that with orthonormal features; {AT}",
    ),
    claim(
        "incoherent-random",
        "and random perturbations of the same length are harmless",
        PLACE,
        "law",
        within(low=0.97),
        "robust:random_over_clean",
        BOTH[0],
        reading=f"the interval of thm-5.1c-random; {AT}",
    ),
    claim(
        "incoherent-robust",
        "Adversarial training is robust there, too",
        PLACE,
        "law",
        within(low=0.75),
        "robust:over_oracle",
        BOTH[1],
        reading="the interval of thm-5.3b, in units of the rule that knows the support and reads "
        f"z = M_S^+ x; {AT}",
    ),
    claim(
        "incoherent-purified",
        "and takes the mixtures out",
        PLACE,
        "law",
        within(high=0.2),
        "trends:most of purified.nu_ratio",
        BOTH[1],
        reading=f"the interval of sec-5.1-purified; {AT}",
    ),
    claim(
        "incoherent-dense",
        "along one direction",
        PLACE,
        "law",
        within(low=0.4),
        "trends:least of purified.along",
        BOTH[1],
        reading=f"the interval of sec-5.1-dense; {AT}",
    ),
)
