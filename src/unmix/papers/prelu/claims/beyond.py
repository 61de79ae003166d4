"""Beyond the paper: invariants, readings, SGD beside the flow, times and margins."""

from unmix.papers.prelu.claims.base import NONE, REDUCED, SMALL, claim, within

NEAR = within(0.8, 1.25)
SEEN = "this interval was chosen after first numbers were seen"
CLOSE = within(0.97, 1.03)
SAME = within(low=0.99)

INVARIANTS = (
    *(
        claim(
            f"homogeneous-p={p}",
            f"p = {p}: f(x; g theta) = g^2 f(x; theta) (distance of the degree from 2)",
            "section 2",
            "identity",
            within(high=1e-9),
            "dynamics:homogeneity",
            f"sgd-p={p}",
        )
        for p in (1, 3)
    ),
    *(
        claim(
            f"balance-flow-p={p}",
            f"p = {p}: v^2 - |w|^2 does not change along the flow (over the largest neuron)",
            "section 4.2",
            "identity",
            within(high=1e-6),
            "dynamics:drift",
            f"flow-p={p}",
            reading="up to single precision: the integrator's angles keep it exactly",
        )
        for p in (1, 3)
    ),
    *(
        claim(
            f"balance-sgd-p={p}",
            f"p = {p}: SGD with its finite rate changes it by little",
            "section 4.2",
            "beyond",
            within(high=1e-3),
            "dynamics:drift",
            f"sgd-p={p}",
        )
        for p in (1, 3)
    ),
    claim(
        "signs-balanced",
        "From a balanced start no v changes its sign (share of neurons)",
        "section 4.2",
        "identity",
        NONE,
        "invariants.flipped",
        "balanced-p=3",
        reading=REDUCED,
    ),
    claim(
        "signs-gaussian",
        "From the code's Gaussian start many do: it is not balanced",
        "section 4.2",
        "beyond",
        within(low=0.1),
        "invariants.flipped",
        "reduced-p=3",
        reading=REDUCED,
    ),
)

SAME_PICTURE = tuple(
    claim(
        f"sgd-is-flow-{what}-p={p}",
        f"p = {p}: {statement}",
        "section 2",
        "beyond",
        interval,
        f"dynamics:{measure}",
        f"sgd-p={p}",
        f"flow-p={p}",
        reading="one start, one training set, S steps of rate r as flow time S r",
    )
    for p in (1, 3)
    for what, statement, interval, measure in (
        (
            "contributions",
            "SGD and flow give every neuron the same contribution (correlation)",
            SAME,
            "same_contributions",
        ),
        (
            "neurons",
            "the K largest neurons are the same ones",
            within(low=0.9),
            "same_neurons",
        ),
        (
            "margins",
            "and margins at the centres agree (largest difference over the mean)",
            within(high=0.03),
            "same_margins",
        ),
    )
)

READINGS = (
    *(
        claim(
            f"reading-sum-p={p}",
            f"p = {p}: loss as a sum (text) for 1/n of the time gives the net of the mean (code)",
            "eq 1",
            "identity",
            within(high=1e-4),
            "dynamics:same_parameters",
            f"sum-p={p}",
            f"mean-p={p}",
            reading=f"largest difference of contributions over the largest; {REDUCED}",
        )
        for p in (1, 3)
    ),
    *(
        claim(
            f"reading-{name}-p={p}",
            f"p = {p}: {words}, the net is near {'F' if p == 1 else 'F^(3)'}, too",
            place,
            "experiment",
            SMALL,
            "learned:distance",
            f"{setting}-p={p}",
            reading=REDUCED,
        )
        for name, words, place, setting in (
            ("balanced", "from the text's balanced start", "eq 4", "from-balanced"),
            ("logistic", "with the logistic loss", "section 2", "logistic"),
            ("epochs", "after the text's 2e5 epochs", "section 5.1", "epochs-literal"),
        )
        for p in (1, 3)
    ),
    claim(
        "reading-starts",
        "Algorithm 1 from uniform starts finds less than with centres among them (ratio)",
        "Algorithm 1",
        "beyond",
        within(0.5, 1.0),
        "learned:literal_over_default",
        "sgd-p=1",
        reading="100 starts, 300 equal steps, the last iterate",
    ),
    claim(
        "reading-fit",
        "Fitting c on data (code) or on the sphere (text) changes the distance by little",
        "Algorithm 1",
        "beyond",
        within(0.8, 1.25),
        "learned:fitted_on_data",
        "reduced-p=3",
        reading=REDUCED,
    ),
    claim(
        "distance-lower",
        "p = 3: no scale does better than the closed form at the centres, and it is all there is "
        "(best over closed form)",
        "Algorithm 1",
        "beyond",
        within(0.999, 1.05),
        "learned:searched_over_lower",
        "reduced-p=3",
        reading=f"max over pairs |a_i b_j - a_j b_i|/(|a_i| + |a_j|); {REDUCED}",
    ),
)

LAWS = (
    *(
        claim(
            f"law-escape-p={p}",
            f"p = {p}: max |f| reaches 1 at K/(p(p-2) c0^(p-2)) + K ln(1/|w(0)|)",
            "Conjecture 1",
            "beyond",
            NEAR,
            "dynamics:escape_over_law",
            f"balanced-p={p}",
            reading=f"c0 the largest initial cosine; {SEEN}; {REDUCED}",
        )
        for p in (3, 4, 5, 6)
    ),
    claim(
        "law-p-bar",
        "p-bar is where that time exceeds the training time: p = 8 is too large (share escaped)",
        "Conjecture 1",
        "beyond",
        NONE,
        "dynamics:escaped",
        "balanced-p=8",
        reading=REDUCED,
    ),
    claim(
        "law-p-bar-predicted",
        "The closed form says so beforehand: p = 8 needs more time than there is",
        "Conjecture 1",
        "beyond",
        within(low=1.0),
        "dynamics:predicted_share",
        "balanced-p=8",
    ),
    *(
        claim(
            f"law-margin-p={p}",
            f"p = {p}: margins follow Ei(m) - Ei(1) = 2 rate (T - t_escape)",
            "section 5.1",
            "beyond",
            CLOSE,
            "dynamics:margin_over_law",
            f"reduced-p={p}",
            reading=f"rate pi_k for p >= 3, sqrt(K_own)/K for p = 1; {REDUCED}",
        )
        for p in (1, 3)
    ),
    claim(
        "law-class-margins",
        "p = 1: the larger class's margin is larger by ln(K1/K2)/2",
        "section 5.1",
        "beyond",
        NEAR,
        "dynamics:class_margin_over_law",
        "even-p=1",
        reading=f"every subclass equally frequent; {SEEN}; {REDUCED}",
    ),
    claim(
        "law-distance",
        "p = 3: what is left of the distance is the spread of subclass frequencies over the margin",
        "Conjecture 1",
        "beyond",
        NEAR,
        "dynamics:spread_over_law",
        "reduced-p=3",
        reading=f"(m_max - m_min)/(m_max + m_min) of the margin law; {SEEN}; {REDUCED}",
    ),
    claim(
        "law-even",
        "p = 3: with equally frequent subclasses the distance all but vanishes",
        "Conjecture 1",
        "beyond",
        within(high=2e-3),
        "learned:distance",
        "even-p=3",
        reading=REDUCED,
    ),
    claim(
        "law-first",
        "p = 3, balanced start: each subclass is learned by the neuron that began nearest to it",
        "section 4.1",
        "beyond",
        within(low=0.9),
        "learned:predictable",
        "balanced-p=3",
        reading=f"among neurons of its sign; share of subclasses; {REDUCED}",
    ),
)

CLAIMS = (*INVARIANTS, *SAME_PICTURE, *READINGS, *LAWS)
