"""What this paper adds to the story of all of them."""

from unmix.papers.story import Scene

STORY = (
    Scene(
        "breaks",
        "What is frequent beats what is strong",
        "Each point holds one strong feature of its class and many weak ones that a small "
        "perturbation can swap. Standard training takes the many. Trained on perturbed points, "
        "the same net stops at a little of the weak ones and turns to the strong one. Against all "
        "perturbations of the paper's size neither is robust: there, no net can be.",
        "3-nearest",
    ),
)
