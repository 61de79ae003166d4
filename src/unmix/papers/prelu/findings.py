"""Where text, code and proofs disagree or leave something open, and which claim decides it."""

from unmix.papers.contents import Finding

FINDINGS = (
    Finding(
        "Two sizes of one training",
        "The text says 2e5 epochs; the public code runs 401 epochs of 200 steps (80 200 steps, a "
        "flow time of 16 040 on the mean loss). The code's is the default; the literal one is run, "
        "too.",
    ),
)
