"""Features that overlap: section 2 says that the results extend to incoherent dictionaries."""

from unmix.claims import Claim
from unmix.papers.purification.claims.base import claim, within

PLACE = "section 2"
# Setting: how many features d = 100 dimensions hold, and the size of their overlaps.
FRAMES = {"mild": (110, 0.030), "frame": (150, 0.058)}


def _claims(name: str, features: int, overlap: float) -> tuple[Claim, ...]:
    at = f"d = 100, D = {features} unit features with overlaps of size {overlap}, l2 radius 0.15"
    clean, beside = f"{name}-clean", (f"{name}-clean", "side-clean")
    return (
        claim(
            f"incoherent-{name}-accuracy",
            f"With {features} features in 100 dimensions clean training is as accurate",
            PLACE,
            "law",
            within(low=0.95),
            "robust:clean_accuracy",
            clean,
            reading=f"the interval of thm-5.1b; {at}",
        ),
        claim(
            f"incoherent-{name}-nu",
            "and mixes as much of all other features into each neuron",
            PLACE,
            "law",
            within(0.75, 1.33),
            "trends:ratio of dense-mixture.nu_over_law",
            *beside,
            reading="nu over kappa/D beside that of orthonormal features; off M_j is what is "
            "orthogonal to it, so that a pure neuron has no mixture (mended after the first "
            f"number: coordinates M^T w gave pure ones some); {at}",
        ),
        claim(
            f"incoherent-{name}-universal",
            "-y M w* fools it as nets on orthonormal features are fooled",
            PLACE,
            "law",
            within(high=1.1),
            "trends:ratio of robust:universal",
            *beside,
            reading=f"accuracy under it, beside that with orthonormal features; {at}",
        ),
        claim(
            f"incoherent-{name}-random",
            "and random perturbations of the same length are harmless",
            PLACE,
            "law",
            within(low=0.97),
            "robust:random_over_clean",
            clean,
            reading=f"the interval of thm-5.1c-random; {at}",
        ),
        claim(
            f"incoherent-{name}-robust",
            "Adversarial training is robust there, too",
            PLACE,
            "law",
            within(low=0.75),
            "robust:over_oracle",
            name,
            reading="the interval of thm-5.3b, in units of the rule that knows the support and "
            f"reads z = M_S^+ x; {at}",
        ),
        claim(
            f"incoherent-{name}-purified",
            "and takes the mixtures out",
            PLACE,
            "law",
            within(high=0.2),
            "trends:most of purified.nu_ratio",
            name,
            reading=f"the interval of sec-5.1-purified; {at}",
        ),
        claim(
            f"incoherent-{name}-dense",
            "along one direction",
            PLACE,
            "law",
            within(low=0.4),
            "trends:least of purified.along",
            name,
            reading=f"the interval of sec-5.1-dense; {at}",
        ),
    )


CLAIMS = tuple(c for name, sizes in FRAMES.items() for c in _claims(name, *sizes))
