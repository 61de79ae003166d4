"""What this paper adds to the story of all of them."""

from unmix.papers.story import Scene

STORY = (
    Scene(
        "mixes",
        "Two labels teach averages",
        "Ten clusters of points, each around a feature of its own; half of them have one label, "
        "half the other. Gradient descent could give each neuron a feature. It does not: every "
        "neuron of a label points at the mean of all its features, and holds each of them weakly.",
        "2a",
    ),
    Scene(
        "breaks",
        "An average is easy to fool",
        "Both nets classify every clean point correctly. But one small step against the average "
        "moves all mixed features at once: the net that was taught two labels loses every point "
        "at less than half the distance that the net with separate features withstands.",
        "3-left",
    ),
    Scene(
        "unmixes",
        "Finer labels keep features apart",
        "The same points, the same training, but one label for each cluster instead of two. "
        "Neurons now hold one feature each. In between, the radius grows with the square root of "
        "the number of labels.",
        "granularity",
    ),
)
