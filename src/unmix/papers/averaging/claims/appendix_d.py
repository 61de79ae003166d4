"""Appendix D: the constructed classifiers."""

from unmix.papers.averaging.claims.base import claim, within

CLAIMS = (
    claim(
        "thm-d.1",
        "f_FA has clean accuracy 1 - o(1)",
        "Thm D.1",
        "law",
        within(low=0.999),
        "robustness:clean_accuracy",
        "FA-k10",
        reading="with both biases 0, as in the proof; the slides drop the ReLU",
    ),
    claim(
        "thm-d.2",
        "f_FA with accurate biases has no robust point at Theta(sqrt(d/k))",
        "Thm D.2",
        "law",
        within(high=0.01),
        "robustness:paper_attack",
        "FA-k10",
    ),
    claim(
        "thm-d.2-biased",
        "The same with biases +-0.3 d, which keep it accurate",
        "Thm D.2",
        "law",
        within(high=0.01),
        "robustness:paper_attack",
        "FA-biased",
    ),
    claim(
        "thm-d.2-biased-clean",
        "The biased f_FA is accurate",
        "Thm D.2, premise",
        "law",
        within(low=0.999),
        "robustness:clean_accuracy",
        "FA-biased",
    ),
    claim(
        "thm-d.3",
        "f_FD with bias -d/2 is robust at sqrt(d)/3",
        "Thm D.3",
        "law",
        within(low=0.999),
        "robustness:certified_at_third",
        "FD-half",
        reading="certified: no perturbation exists",
    ),
    claim(
        "thm-d.3-clean",
        "f_FD has clean accuracy 1 - o(1)",
        "Thm D.3",
        "law",
        within(low=0.999),
        "robustness:clean_accuracy",
        "FD-half",
    ),
)
