"""What this paper adds to the story of all of them."""

from unmix.papers.story import Scene

STORY = (
    Scene(
        "mixes",
        "A little of everything",
        "Points are sparse sums of many features. Clean training gives each neuron a feature of "
        "its own, and beside it a dense mixture of all others: too small to hurt on clean points, "
        "and large enough for a perturbation that adds them all up.",
        "9",
    ),
    Scene(
        "unmixes",
        "Adversarial training purifies",
        "Training goes on against perturbed points. The features stay where they are, and the "
        "dense mixtures go: a small change of the weights, and a large one of the radius. Radii "
        "beside those of the rule that knows the features.",
        "radii",
    ),
)
