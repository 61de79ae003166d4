"""Section 3 and appendix C: F and F^(p), what they are and how robust (Prop 1, Thms 1 and 3)."""

from unmix.papers.prelu.claims.base import EXACT, claim, within

HALF = "with C = 1/2, what Lemma 3 is for Gaussians; share of draws less the bound"
NOT_BELOW = within(low=0.0)
PERCENT = within(0.99, 1.01)

REALISED = tuple(
    claim(
        f"realise-{name}",
        f"{shown} is a pReLU net of any groups of neurons and any lam (largest difference)",
        "section 3",
        "identity",
        EXACT,
        "classifiers:realised",
        f"{name}-K10,alpha=0.1",
        reading="groups and lam drawn at random; relative to the largest value",
    )
    for name, shown in (("F", "F"), ("F1", "F^(1)"), ("F2", "F^(2)"), ("F3", "F^(3)"))
)

SYMMETRY = (
    claim(
        "remark-1",
        "Rescaling (w, v) to (g w, v/g) and permuting neurons keeps f (largest difference)",
        "Remark 1",
        "identity",
        EXACT,
        "dynamics:symmetry",
        "sgd-p=3",
        reading="random g and order; relative to the largest output",
    ),
)

CLEAN = tuple(
    claim(
        f"prop-1-{name}-K{k}-alpha={alpha}",
        f"P({shown} y > 0) is at least the bound at K = {k}, alpha = {alpha}",
        "Prop 1",
        "identity",
        NOT_BELOW,
        "classifiers:clean_slack",
        f"{name}-K{k},alpha={alpha}",
        reading=HALF,
    )
    for name, shown in (("F", "F"), ("F1", "F^(1)"), ("F3", "F^(3)"))
    for k, alpha in ((10, "1"), (20, "3"))
)

BROKEN = (
    *(
        claim(
            f"thm-1-F-{setting}",
            "Moving x by (1+rho)/sqrt K along -y d_0 leaves F at most the bound's accuracy",
            "Thm 1 (1)",
            "identity",
            NOT_BELOW,
            "classifiers:broken_slack",
            f"F-{setting}",
            reading=f"{HALF}; worst of five rho",
        )
        for setting in ("K10,alpha=1", "K10,alpha=3", "K20,alpha=1")
    ),
    claim(
        "thm-1-F-exact",
        "That accuracy is Phi(-rho sqrt(D/K)/alpha): largest difference over rho",
        "Thm 1 (1)",
        "beyond",
        within(high=0.01),
        "classifiers:broken_over_law",
        "F-K10,alpha=1",
        reading="as long as the own relu stays active",
    ),
    *(
        claim(
            f"thm-1-F{p}-{setting}",
            f"F^({p}) is robust at (sqrt 2 - delta)/2 with at least the bound's probability",
            "Thm 1 (2)",
            "identity",
            NOT_BELOW,
            "classifiers:robust_slack",
            f"F{p}-{setting}",
            reading=f"{HALF}; radii are certified, worst of five delta",
        )
        for p in (2, 3)
        for setting in ("K10,alpha=0.1", "K10,alpha=1", "K20,alpha=1")
    ),
)

COMPLEMENT = (
    *(
        claim(
            f"thm-3-F-{setting}",
            "F is robust at (1 - rho)/sqrt K with at least the bound's probability",
            "Thm 3 (1)",
            "identity",
            NOT_BELOW,
            "classifiers:kept_slack",
            f"F-{setting}",
            reading=f"{HALF}; exact radii; the proof gives 4 exp(-.../4), the printed bound is "
            "sharper and holds",
        )
        for setting in ("K10,alpha=1", "K10,alpha=3", "K20,alpha=1")
    ),
    *(
        claim(
            f"thm-3-F3-{setting}",
            "F^(3) is robust at (sqrt 2 + delta)/2 with at most the corrected bound 4 K exp(...)",
            "Thm 3 (2)",
            "identity",
            NOT_BELOW,
            "classifiers:lost_slack",
            f"F3-{setting}",
            reading="4 K, since the proof's last step loses the K of a union bound; attacked "
            "half-way to every opposite centre",
        )
        for setting in ("K10,alpha=1", "K10,alpha=3", "K20,alpha=3")
    ),
    claim(
        "thm-3-F3-printed",
        "The printed bound, 4 for 4 K, holds where measured, too",
        "Thm 3 (2)",
        "identity",
        NOT_BELOW,
        "classifiers:lost_slack_printed",
        "F3-K10,alpha=3",
        reading="the proof does not give it; the bound is too loose for a measurement to decide",
    ),
)

CRITICAL = (
    *(
        claim(
            f"critical-F-K{k}",
            f"The critical radius of F is 1/sqrt {k}",
            "Remark 2",
            "identity",
            within(0.99 * k**-0.5, 1.01 * k**-0.5),
            "classifiers:critical",
            f"F-K{k},alpha=0.1",
            reading="median of exact radii",
        )
        for k in (10, 20)
    ),
    *(
        claim(
            f"critical-F{p}-K{k}",
            f"The critical radius of F^({p}) is sqrt 2/2, whatever K is",
            "Remark 2",
            "identity",
            within(0.99 * 0.5**0.5, 1.01 * 0.5**0.5),
            "classifiers:critical",
            f"F{p}-K{k},alpha=0.1",
            reading="median, between certificate and attack",
        )
        for p in (2, 3)
        for k in (10, 20)
    ),
    claim(
        "critical-bracket",
        "Certificate and attack on F^(3) are within 1 % of each other (width of the bracket)",
        "Remark 2",
        "beyond",
        within(high=0.01),
        "classifiers:bracket",
        "F3-K10,alpha=0.1",
        reading="r >= (|relu x_own|_p - |relu x_other|_p)/sqrt 2, since p-norms are 1-Lipschitz",
    ),
)

CLAIMS = (*REALISED, *SYMMETRY, *CLEAN, *BROKEN, *COMPLEMENT, *CRITICAL)
