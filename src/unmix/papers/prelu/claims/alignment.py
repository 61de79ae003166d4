"""Section 4 and appendix D: neuron alignment (Lemmas 1 and 4 to 6, Theorem 2)."""

from unmix.papers.prelu.claims.base import ALL, NONE, claim, within

SIMPLIFIED = "eps = 1e-4, D = 100, h = 200, at T = ln(1/(sqrt(h) eps))/(4K), exponential loss"
HOLDS = within(high=1.0)
SHELL = "u drawn with cos(u, m) = 0.99; the field x^(p) decides, Lemma 1's error is far below"
LADDER = ("eps=0.01", "eps=0.001", "eps=0.0001", "eps=1e-06")

LEMMA_1 = (
    *(
        claim(
            f"lemma-1-p={p}",
            f"p = {p}: neurons turn by P x^(p)(w) up to 4 eps sqrt(h) M^2 K p (error over bound)",
            "Lemma 1",
            "identity",
            HOLDS,
            "alignment:error_over_bound",
            f"aligning-p={p},eps=0.0001",
            reading=f"{SIMPLIFIED}; the printed O(eps k sqrt h) means K",
        )
        for p in (1, 2, 3)
    ),
    *(
        claim(
            f"lemma-1-eps-p={p}",
            f"p = {p}: the error is O(eps): exponent in eps at least 1",
            "Lemma 1",
            "law",
            within(low=1.0),
            "alignment:error_in_eps",
            *(f"aligning-p={p},{eps}" for eps in LADDER),
            reading="each at its own horizon T(eps)",
        )
        for p in (1, 2, 3)
    ),
    claim(
        "lemma-1-outputs",
        "The error is at most 2 K p max |f|",
        "Lemma 1, eq 60",
        "identity",
        HOLDS,
        "alignment:error_over_outputs",
        "aligning-p=1,eps=0.0001",
    ),
    claim(
        "lemma-1-logistic",
        "As printed it fails for the logistic loss: the error is half the speed itself",
        "Lemma 1",
        "identity",
        within(0.49, 0.51),
        "alignment:error_over_speed",
        "aligning-logistic",
        reading="|l'(0)| is 1/2, so neurons turn half as fast; error over the largest speed",
    ),
    claim(
        "lemma-1-logistic-corrected",
        "With x^(p)/2 for the logistic loss, the error is small again",
        "Lemma 1",
        "identity",
        within(high=1e-6),
        "alignment:scaled_error_over_speed",
        "aligning-logistic",
        reading="error over the largest speed",
    ),
)

LEMMAS = (
    *(
        claim(
            f"lemma-4-weights-p={p}",
            f"p = {p}: max |w|^2 <= 2 eps M^2/sqrt h up to T (ratio)",
            "Lemma 4",
            "identity",
            HOLDS,
            "alignment:weights_over_bound",
            f"aligning-p={p},eps=0.01",
            reading="at T, where it is largest",
        )
        for p in (1, 3)
    ),
    *(
        claim(
            f"lemma-4-outputs-p={p}",
            f"p = {p}: max |f| <= 2 eps sqrt(h) M^2 up to T (ratio)",
            "Lemma 4",
            "identity",
            HOLDS,
            "alignment:outputs_over_bound",
            f"aligning-p={p},eps=0.01",
            reading="at T, where it is largest",
        )
        for p in (1, 3)
    ),
    *(
        claim(
            f"horizon-p={p}",
            f"p = {p}: T ends long before alignment does: the neuron that turned most still has "
            f"cosine {least} or more with its start",
            "Lemma 4",
            "beyond",
            within(low=least),
            "alignment:turned",
            f"aligning-p={p},eps=0.0001",
        )
        for p, least in ((1, 0.8), (3, 0.99))
    ),
    *(
        claim(
            f"lemma-5-p={p}",
            f"p = {p}: sum z^q sum z^(p+1-q) is convex with its minimum at (p+1)/2",
            "Lemma 5",
            "identity",
            NONE,
            "alignment:powers_minimum",
            f"shells-p={p}",
            reading="distance of the minimiser on a grid of q; z > 0",
        )
        for p in (1, 2, 3)
    ),
    claim(
        "lemma-6-exponential",
        "|-dl/df - y| <= 2 |f| on |f| <= 1 for the exponential loss (largest excess)",
        "Lemma 6",
        "identity",
        within(high=1e-12),
        "alignment:slope_gap",
        "aligning-p=1,eps=0.0001",
    ),
    claim(
        "lemma-6-logistic",
        "For the logistic loss it fails: at f = 0 the excess is 1/2",
        "Lemma 6",
        "identity",
        within(0.499, 0.501),
        "alignment:slope_gap",
        "aligning-logistic",
        reading="printed for both losses",
    ),
)

THEOREM_2 = (
    claim(
        "thm-2-mean-p=1",
        "p = 1: every direction near the positive mean turns towards it (share, in all of R^D)",
        "Thm 2 (7), eq 61",
        "identity",
        ALL,
        "alignment:to_mean of anywhere",
        "shells-p=1",
        reading=SHELL,
    ),
    claim(
        "thm-2-mean-p=3",
        "p = 3: every direction near it in the span of the positive centres turns away "
        "(share that turns towards it)",
        "Thm 2 (7), eq 61",
        "identity",
        NONE,
        "alignment:to_mean of span",
        "shells-p=3",
        reading=f"the proof takes w in the span of the positive centres; {SHELL}",
    ),
    claim(
        "thm-2-printed-p=3",
        "p = 3: as printed, for any w, it fails: random directions near the mean turn towards it",
        "Thm 2 (7), eq 61",
        "identity",
        within(low=0.9),
        "alignment:to_mean of anywhere",
        "shells-p=3",
        reading=f"share that turns towards it; printed is 0; {SHELL}",
    ),
    claim(
        "thm-2-mean-p=2",
        "p = 2: in the span nothing moves (largest rate)",
        "Thm 2 (7), eq 61",
        "beyond",
        within(high=1e-12),
        "alignment:largest_rate of span",
        "shells-p=2",
    ),
    *(
        claim(
            f"thm-2-sign-p={p}",
            f"p = {p}: the rate has the sign of eta^2 - (p-2) beta^2, in and out of the span",
            "Thm 2 (7), eq 61",
            "beyond",
            ALL,
            "alignment:sign_law",
            f"shells-p={p}",
            reading="beta, eta: deviation inside and outside the span of the positive centres; "
            "directions within 10 % of a tie are left out",
        )
        for p in (1, 2, 3)
    ),
    claim(
        "thm-2-rate-p=3",
        "p = 3: the mean rate is p K1^(1-p/2) (eta^2 - (p-2) beta^2)",
        "Thm 2 (7), eq 61",
        "beyond",
        within(0.97, 1.03),
        "alignment:rate_law",
        "shells-p=3",
    ),
    claim(
        "thm-2-subclass-p=3",
        "p = 3: every direction near a positive centre turns towards it (share, in R^D)",
        "Thm 2 (8), eq 62",
        "identity",
        ALL,
        "alignment:to_subclass of anywhere",
        "shells-p=3",
        reading=SHELL,
    ),
    claim(
        "thm-2-subclass-printed-p=1",
        "p = 1: as printed, for any p, it fails: in the span most directions near a centre turn "
        "away from it",
        "Thm 2 (8), eq 62",
        "identity",
        within(high=0.5),
        "alignment:to_subclass of span",
        "shells-p=1",
        reading=f"share that turns towards it; printed is 1, the proof needs p > 2; {SHELL}",
    ),
)

PLANE = tuple(
    claim(
        f"plane-p={p}",
        f"p = {p}: between two centres x^(p) points {where} (largest angle off)",
        "section D.1, Fig 7",
        "identity",
        within(high=1e-9),
        "alignment:off_plane",
        f"shells-p={p}",
        reading="w at the angle th from mu_1; x^(p) at the angle atan(tan^(p-1) th)",
    )
    for p, where in (
        (1, "at the mean of both"),
        (2, "along the neuron itself"),
        (3, "further towards the nearer one"),
    )
)

CLAIMS = (*LEMMA_1, *LEMMAS, *THEOREM_2, *PLANE)
