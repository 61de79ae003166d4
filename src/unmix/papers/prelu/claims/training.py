"""Section 5.1 and appendix A: what training ends in (Conjecture 1, Figs 2 and 5)."""

from unmix.papers.prelu.claims.base import ALL, NONE, REDUCED, SMALL, claim, within

AVERAGING = "p = 1: the net is near F, up to scale"
SUBCLASSES = "p = {p}: the net is near F^({p}), up to scale"
SEARCH = "<< 1 read as at most 0.1; Algorithm 1 with centres and class means among its starts"
NOISE = ("noise-p={p},alpha=0.01", "mean-p={p}", "noise-p={p},alpha=0.3")
NOISE_20 = ("K20-p={p},alpha=0.01", "K20-p={p}", "K20-p={p},alpha=0.3")
# Figure, which K, where else the text speaks of it, and its noise levels.
LADDERS = (("2a", "", "section 5.1", NOISE), ("5a", "K = 20, ", "appendix A.2", NOISE_20))

CONJECTURE = (
    claim(
        "conj-1-p=1",
        f"{AVERAGING} (trained by SGD)",
        "Conjecture 1, Fig 2a",
        "experiment",
        SMALL,
        "learned:distance",
        "sgd-p=1",
        reading=SEARCH,
    ),
    claim(
        "conj-1-p=3",
        f"{SUBCLASSES.format(p=3)} (trained by SGD)",
        "Conjecture 1, Fig 2a",
        "experiment",
        SMALL,
        "learned:distance",
        "sgd-p=3",
        reading=SEARCH,
    ),
    *(
        claim(
            f"conj-1-reduced-p={p}",
            AVERAGING if p == 1 else SUBCLASSES.format(p=p),
            "Conjecture 1, Fig 2a",
            "experiment",
            SMALL,
            "learned:distance",
            f"reduced-p={p}",
            reading=f"{SEARCH}; {REDUCED}",
        )
        for p in (1, 3, 4)
    ),
    *(
        claim(
            f"conj-1-K20-p={p}",
            f"{AVERAGING if p == 1 else SUBCLASSES.format(p=p)}, K = 20",
            "Conjecture 1, Fig 5a",
            "experiment",
            SMALL,
            "learned:distance",
            f"K20-p={p}",
            reading=f"{SEARCH}; {REDUCED}",
        )
        for p in (1, 3)
    ),
    *(
        claim(
            f"conj-1-other-p={p}",
            f"p = {p}: the net is far from {'F^(1)' if p == 1 else 'F'}, the other candidate",
            "Conjecture 1",
            "beyond",
            within(low=1.0),
            f"learned:distance_to of {'subclasses' if p == 1 else 'averaging'}",
            f"reduced-p={p}",
            reading=REDUCED,
        )
        for p in (1, 3)
    ),
    claim(
        "conj-1-p=2",
        "p = 2 lies between, near neither F^(2) nor an average",
        "Conjecture 1",
        "beyond",
        within(low=0.5),
        "learned:distance",
        "mean-p=2",
        reading=f"distance to F^(2); {REDUCED}",
    ),
    claim(
        "conj-1-too-large-p",
        "p-bar is finite: with p = 6 nothing is learned in the paper's time (subclasses covered)",
        "Conjecture 1",
        "experiment",
        NONE,
        "learned:covered",
        "reduced-p=6",
        reading=REDUCED,
    ),
)

FIGURE_2 = (
    *(
        claim(
            f"fig-{figure}-noise-p=1",
            f"{where}p = 1: the distance increases with alpha (slope)",
            f"Fig {figure}, {place}",
            "law",
            within(low=0.0),
            "learned:distance_in_noise",
            *(a.format(p=1) for a in ladder),
            reading=REDUCED,
        )
        for figure, where, place, ladder in LADDERS
    ),
    *(
        claim(
            f"fig-{figure}-largest-p=3",
            f"{where}p = 3: the distance stays small up to alpha = 0.3",
            f"Fig {figure}, {place}",
            "experiment",
            SMALL,
            "learned:largest_distance",
            *(a.format(p=3) for a in ladder),
            reading=REDUCED,
        )
        for figure, where, place, ladder in LADDERS
    ),
    claim(
        "fig-2b-p=1",
        "p = 1: many neurons share the work (share of h above 1 % of the largest)",
        "Fig 2b",
        "experiment",
        within(low=0.1),
        "learned:dominant_share",
        "sgd-p=1",
    ),
    claim(
        "fig-2b-p=3",
        "p = 3: a few dominant neurons do the work, not many more than K",
        "Fig 2b",
        "experiment",
        within(10, 30),
        "contributions.dominant",
        "sgd-p=3",
        reading="between K and 3 K above 1 % of the largest",
    ),
    claim(
        "fig-2cd-mean-p=1",
        "p = 1: neurons point at the class averages (cosine, weighted by contribution)",
        "Fig 2c, Fig 2d",
        "experiment",
        within(low=0.99),
        "contributions.to_mean",
        "sgd-p=1",
    ),
    claim(
        "fig-2cd-subclasses-p=1",
        "p = 1: no dominant neuron points at a subclass (cosine above 0.9)",
        "Fig 2c, Fig 2d",
        "experiment",
        NONE,
        "contributions.covered",
        "sgd-p=1",
    ),
    claim(
        "fig-2cd-subclass-p=3",
        "p = 3: every dominant neuron points at a subclass centre (smallest cosine)",
        "Fig 2c, Fig 2d",
        "experiment",
        within(low=0.99),
        "contributions.to_subclass_min",
        "sgd-p=3",
    ),
    claim(
        "fig-2cd-covered-p=3",
        "p = 3: every subclass has a dominant neuron (share of K)",
        "Fig 2c, Fig 2d",
        "experiment",
        ALL,
        "learned:covered",
        "sgd-p=3",
    ),
    claim(
        "fig-5cd-mean-p=1",
        "K = 20, p = 1: neurons point at the class averages",
        "Fig 5c, Fig 5d",
        "experiment",
        within(low=0.99),
        "contributions.to_mean",
        "K20-p=1",
        reading=REDUCED,
    ),
    claim(
        "fig-5cd-covered-p=3",
        "K = 20, p = 3: every subclass has a dominant neuron (share of K)",
        "Fig 5c, Fig 5d",
        "experiment",
        ALL,
        "learned:covered",
        "K20-p=3",
        reading=REDUCED,
    ),
)

PHASES = (
    claim(
        "fig-1-p=1",
        "In R^3, p = 1: neurons end at the class averages",
        "Fig 1",
        "experiment",
        within(low=0.95),
        "contributions.to_mean",
        "sphere-p=1",
        reading="n = 150, alpha = 0.1, h = 100, which the text does not state",
    ),
    claim(
        "fig-1-p=3",
        "In R^3, p = 3: neurons end at the subclass centres",
        "Fig 1",
        "experiment",
        within(low=0.95),
        "contributions.to_subclass",
        "sphere-p=3",
        reading="n = 150, alpha = 0.1, h = 100, which the text does not state",
    ),
    *(
        claim(
            f"phases-p={p}",
            f"p = {p}: directions are found in the alignment phase and kept while fitting "
            "(cosine of both, weighted by contribution)",
            "section 4.1",
            "experiment",
            within(low=0.95),
            "learned:aligned_at_escape",
            f"escaped-p={p}",
            f"reduced-p={p}",
            reading=f"the phase ends where max |f| = 1; {REDUCED}",
        )
        for p in (1, 3)
    ),
)

CLAIMS = (*CONJECTURE, *FIGURE_2, *PHASES)
