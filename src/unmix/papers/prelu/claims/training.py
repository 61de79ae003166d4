"""Section 5.1 and appendix A: what training ends in (Conjecture 1, Figs 2 and 5)."""

from unmix.papers.prelu.claims.base import ALL, NONE, claim, within

CLAIMS = (
    claim(
        "fig-2cd-mean-p=1",
        "p = 1: neurons point at the class averages (cosine, weighted by contribution)",
        "Fig 2 (c)",
        "experiment",
        within(low=0.99),
        "contributions.to_mean",
        "sgd-p=1",
    ),
    claim(
        "fig-2cd-subclasses-p=1",
        "p = 1: no dominant neuron points at a subclass (cosine above 0.9)",
        "Fig 2 (c)",
        "experiment",
        NONE,
        "contributions.covered",
        "sgd-p=1",
    ),
    claim(
        "fig-2cd-subclass-p=3",
        "p = 3: every dominant neuron points at a subclass centre (smallest cosine)",
        "Fig 2 (d)",
        "experiment",
        within(low=0.99),
        "contributions.to_subclass_min",
        "sgd-p=3",
    ),
    claim(
        "fig-2cd-covered-p=3",
        "p = 3: every subclass has a dominant neuron (share of K)",
        "Fig 2 (d)",
        "experiment",
        ALL,
        "learned:covered",
        "sgd-p=3",
    ),
)
