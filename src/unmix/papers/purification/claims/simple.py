"""Learners of low complexity: sections 3 and 5.2, appendix G."""

from unmix.papers.purification.claims.base import claim, within

AT = "M = I, l_inf radius 0.025, union of attacks"
NETS = {
    "linear": ("linear learners", "section 3"),
    "polynomial": ("polynomials of degree 3", "Cor 5.7"),
    "tangent": ("the tangent kernel", "Thms 5.6, G.1"),
}

CLAIMS = (
    *(
        claim(
            f"{name}-error",
            f"No training makes {what} robust: robust error at least (1 - o(1))/2",
            place,
            "law",
            within(low=0.45),
            "learners:robust_error",
            f"{name}-robust",
            reading=f"adversarially trained; {AT}",
        )
        for name, (what, place) in NETS.items()
    ),
    *(
        claim(
            f"{name}-behind",
            f"The purified net is more robust than {what}, trained cleanly or adversarially",
            place,
            "law",
            within(low=0.1),
            "learners:lead",
            *("linf-purified", f"{name}-clean", f"{name}-robust"),
            reading=f"lead in robust accuracy over the better training; {AT}",
        )
        for name, (what, place) in NETS.items()
    ),
    claim(
        "tangent-clean",
        "The tangent kernel easily reaches high clean accuracy",
        "Thm 5.6, Def 5.5",
        "law",
        within(low=0.95),
        "learners:clean_accuracy",
        "tangent-clean",
        reading="with the sign of the gradient, plus",
    ),
    claim(
        "tangent-printed",
        "With the printed sign the kernel's functions are even",
        "Def 5.5",
        "identity",
        within(high=1e-9),
        "learners:evenness",
        "tangent-printed",
        reading="the literal minus: p(x) = p(-x), while labels are odd",
    ),
    claim(
        "tangent-printed-clean",
        "so that they cannot learn the labels at all",
        "Def 5.5",
        "beyond",
        within(0.45, 0.55),
        "learners:clean_accuracy",
        "tangent-printed",
        reading="the literal minus",
    ),
)
