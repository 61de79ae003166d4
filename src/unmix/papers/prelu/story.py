"""What this paper adds to the story of all of them."""

from unmix.papers.story import Scene

STORY = (
    Scene(
        "unmixes",
        "A steeper activation keeps features apart",
        "The same data and the same two labels, but neurons that answer with relu^p instead of "
        "relu. From p = 3 on gradient flow no longer averages: each neuron of weight goes to one "
        "subclass of its label, where those of p = 1 go to the mean of all.",
        "2c",
    ),
)
