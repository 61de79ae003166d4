"""Appendix A: the training set and the initialisation."""

from unmix.papers.averaging.claims.base import claim, within

SLACK = within(low=1.0)

TRAINING_SET = {
    "A.6.1": ("Noise norms are within 2 ln d of sqrt(d)", "A.6.1 ||xi| - sqrt d| <= 2 ln d", ""),
    "A.6.2": ("Points have norm at most 3 sqrt(d)", "A.6.2 |x| <= 3 sqrt d", ""),
    "A.6.3": (
        "Noises are nearly orthogonal: inner products at most 4 sqrt(d) ln d",
        "A.6.3 <xi_i, xi_j> <= Delta",
        "without the stray square on ln",
    ),
    "A.6.4": (
        "Noise and centres are nearly orthogonal: at most 4 sqrt(d) ln d",
        "A.6.4 <mu, xi> <= Delta",
        "",
    ),
    "A.6.5": (
        "Points of different clusters are nearly orthogonal: at most 4 sqrt(d) ln d",
        "A.6.5 <x_i, x_j> <= Delta",
        "",
    ),
    "A.6.6": (
        "Points of one cluster have inner products in [d/2, 2d]",
        "A.6.6 d/2 <= <x_i, x_j> <= 2d",
        "for i != j; |x_i|^2 itself is about 2.1 d",
    ),
    "A.6.7": (
        "Clusters hold n/k points up to sqrt(2n/k) ln(n/k)",
        "A.6.7 |I_j| - n/k",
        "sqrt(2n/k), as in the proof; typeset as sqrt(2n)/k",
    ),
}

CLAIMS = (
    *(
        claim(
            f"prop-{place.lower()}",
            statement,
            f"Prop {place[:3]} ({place[-1]})",
            "experiment",
            SLACK,
            f"assumptions.{column}",
            "binary",
            reading=reading or "slack: bound over measured",
        )
        for place, (statement, column, reading) in TRAINING_SET.items()
    ),
    claim(
        "lemma-a.9-min",
        "P(min of l normals <= -sqrt(2 ln l) - t) <= e^(-t^2/2)/2",
        "Lemma A.9",
        "identity",
        within(high=1.05),
        "start:gaussian_minimum",
        "binary",
        reading="Monte Carlo rate over bound, worst of six (l, t)",
    ),
    claim(
        "lemma-a.9-max",
        "P(max of l normals <= sqrt(2 ln l - t)) <= exp(-e^(t/2) / (sqrt(2 pi)(sqrt(2 ln l) + 1)))",
        "Lemma A.9",
        "identity",
        within(high=1.05),
        "start:gaussian_maximum",
        "binary",
        reading="t inside the root; Monte Carlo rate over bound",
    ),
    claim(
        "prop-a.10-weights",
        "Initial weight norms over sigma_w are within 2 ln d of sqrt(d)",
        "Prop A.10",
        "experiment",
        SLACK,
        "assumptions.A.10 ||w0|/sigma_w - sqrt d| <= 2 ln d",
        "binary",
    ),
    claim(
        "prop-a.10-bias",
        "Initial biases are at most 2 sigma_b sqrt(2 ln m)",
        "Prop A.10",
        "experiment",
        SLACK,
        "assumptions.A.10 |b0| <= 2 sigma_b sqrt(2 ln m)",
        "binary",
    ),
    claim(
        "prop-a.12",
        "Each neuron starts active on at least n/(3km^2) points of every cluster",
        "Prop A.12",
        "law",
        SLACK,
        "assumptions.A.12 |T_srj| >= n/(3 k m^2)",
        "binary",
        reading="the active share is uniform on (0,1), so a count of 0 has probability 1/(n/k+1)",
    ),
    claim(
        "prop-c.3",
        "Each neuron of the k-label net starts active on n/(3 k^3 h^2) points of every cluster",
        "Prop C.3",
        "law",
        SLACK,
        "assumptions.C.3 |T_srj| >= n/(3 k^3 h^2)",
        "k-class",
    ),
    claim(
        "lemma-a.13",
        "Initial pre-activations are at most eta sqrt(d)/(nm)",
        "Lemma A.13",
        "law",
        SLACK,
        "assumptions.A.13 |z0| <= eta sqrt(d)/(n m)",
        "binary",
        reading="does not follow from Assumption A.4; needs sigma_w <= eta/(6 n m sqrt(d))",
    ),
    claim(
        "lemma-a.14",
        "y l' starts in [-2/3, -1/3]",
        "Lemma A.14",
        "experiment",
        within(high=1 / 6),
        "start:slope_at_start",
        "binary",
    ),
    claim(
        "lemma-a.15",
        "y l' stays in [-1, 0]",
        "Lemma A.15",
        "identity",
        within(high=0.0),
        "start:slope_range",
        "binary",
    ),
)
