"""Where the text is wrong or leaves something open, and which claims decide it."""

from unmix.papers.contents import Finding

FINDINGS = (
    Finding(
        "The literal step of the attack hides the transition",
        "With eta~ = 1000 as printed, B is stopped at 0.05 and nothing else happens in T = 1000. "
        "With the margin loss as a mean over the batch a point sees eta~/N = 10, and the "
        "transition comes near the 150 that the text reports. That reading was chosen for it.",
        ("fig-3-transition-literal", "fig-3-transition", "thm-4.4-literal"),
    ),
    Finding(
        "No classifier can be robust at the paper's numbers",
        "alpha = 2 < 2 eps = 2.4: nearly all pairs of points of two classes are within 2 eps, so "
        "that their balls intersect. A robust accuracy that rises depends on which perturbations "
        "are tried: zero under aligned features, near one under iterated raw ascent.",
        ("section-2.5-separation", "thm-4.4-robust", "verdict-raw", "verdict-all-features"),
    ),
    Finding(
        "A factor P",
        "Prop 3.2 and Lemma D.28 drop the perturbation of the other P patches. The robust net is "
        "robust iff n_R (alpha - eps) > P eps; alpha = 10 eps is not enough at P = 16.",
        (
            "prop-3.2-error",
            "ten-times-is-not-enough",
            "threshold-robust-minimum",
            "minima-exchanged",
            "lemma-d.28",
        ),
    ),
    Finding(
        "Who wins is decided at the start",
        "Standard training learns the non-robust feature first iff B_0 > S A_0. At the paper's "
        "S = 8/15 and m = 100 some classes start on the other side.",
        ("assumption-2.3-dense", "race-winner"),
    ),
    Finding(
        "An exponent",
        "Lemmas D.24 to D.26 and E.11 give B = O(1/eta~). What stops at 1/eta~ is sum_s B_s^q, so "
        "B itself falls as eta~^(-1/q).",
        ("section-5.2-stop", "lemma-d.24", "final-b-exponent", "stopping-constant"),
    ),
    Finding(
        "An accuracy that saturates",
        "FL_NR stays near one after adversarial training, although nine tenths of the output come "
        "from robust features. The graded share tells what the accuracy does not.",
        ("share-saturates", "share-graded"),
    ),
    Finding(
        "Published attacks are masked",
        "Cross-entropy PGD finds nothing on the net of Prop 3.1, whose gradient underflows, while "
        "a perturbation that does not know the net fools all of it.",
        ("masking-minimum", "prop-3.1-error"),
    ),
    Finding(
        "Reading the label from the attack",
        "At sigma_0 = 1/sqrt(d), which section 2.4 and Assumption B.3 ask for, the adversarial "
        "loss vanishes while the clean one does not: the perturbation itself tells the label.",
        ("leak-xavier", "readings-xavier"),
    ),
)
