"""Section 5.1, Figs 2e and 5e: robustness of trained nets, and of F and F^(p) under attack."""

from unmix.papers.prelu.claims.base import NONE, REDUCED, claim, within

UPPER = "median over points of the strongest attack's radius, an upper bound"

CLAIMS = (
    *(
        claim(
            f"fig-2e-critical-p={p}",
            f"p = {p}: the trained net's critical radius is {shown}",
            "Fig 2e, Remark 2",
            "experiment",
            within(0.95 * value, 1.05 * value),
            "robustness:critical",
            f"sgd-p={p}",
            reading=UPPER,
        )
        for p, shown, value in ((1, "1/sqrt K", 10**-0.5), (3, "sqrt 2/2", 0.5**0.5))
    ),
    *(
        claim(
            f"fig-5e-critical-p={p}",
            f"K = 20, p = {p}: the trained net's critical radius is {shown}",
            "Fig 5e, Remark 2",
            "experiment",
            within(0.95 * value, 1.05 * value),
            "robustness:critical",
            f"K20-p={p}",
            reading=f"{UPPER}; {REDUCED}",
        )
        for p, shown, value in ((1, "1/sqrt K", 20**-0.5), (3, "sqrt 2/2", 0.5**0.5))
    ),
    claim(
        "fig-2e-lead",
        "p = 3 is more robust than p = 1 (mean lead over radii up to 1)",
        "Fig 2e",
        "experiment",
        within(low=0.3),
        "robustness:lead",
        "sgd-p=1",
        "sgd-p=3",
        reading="sqrt 2/2 - 1/sqrt 10 is 0.39",
    ),
    claim(
        "fig-2e-flattered",
        "p = 3: PGD from the clean point finds nothing at 0.75, where nothing is left "
        "(its robust accuracy less the union's)",
        "Fig 2e",
        "beyond",
        within(low=0.9),
        "robustness:flattered",
        "sgd-p=3",
        reading="relu^3 is flat at 0: no gradient points to the opposite centre",
    ),
    claim(
        "fig-2e-published",
        "p = 3: so does the published evaluation, which drew the figure's curve",
        "Fig 2e",
        "beyond",
        within(low=0.9),
        "robustness:published_at",
        "sgd-p=3",
        reading="zero start, step 0.1, g/(|g| + 1e-7) of the loss averaged over 20 000 points, "
        "last iterate; 100 of its 2000 steps",
    ),
    *(
        claim(
            f"suite-exact-F-{setting}",
            "The suite's radius for F is the exact one (largest ratio over points)",
            "Thm 1 (1)",
            "beyond",
            within(1.0 - 1e-9, 1.01),
            "robustness:attack_over_exact",
            f"F-{setting}",
        )
        for setting in ("K10,alpha=0.1", "K20,alpha=0.1")
    ),
    *(
        claim(
            f"suite-certificate-F3-{setting}",
            "The suite's radius for F^(3) is within 2 % of its certificate (largest ratio)",
            "Thm 1 (2)",
            "beyond",
            within(1.0 - 1e-9, 1.02),
            "robustness:attack_over_certificate",
            f"F3-{setting}",
        )
        for setting in ("K10,alpha=0.1", "K20,alpha=0.1")
    ),
    *(
        claim(
            f"sandwich-{name}",
            f"No attack on {shown} succeeds below the closed form (points)",
            "Thm 1 (2)" if name == "F3" else "Thm 1 (1)",
            "identity",
            NONE,
            "robustness:attack_under_certificate",
            f"{name}-K10,alpha=0.1",
        )
        for name, shown in (("F", "F"), ("F3", "F^(3)"))
    ),
    claim(
        "first-power",
        "Subclass neurons without the power are no remedy: F^(1) has radius 1/sqrt(1 + K_opposite)",
        "Thm 1 (2)",
        "beyond",
        within(0.95, 1.05),
        "robustness:first_power",
        "F1-K10,alpha=0.1",
        reading="mean over points of the radius over the closed form at a centre",
    ),
)
