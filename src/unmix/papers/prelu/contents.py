"""Every statement, figure and table of the paper, and the equations that claims speak of."""

from unmix.papers.contents import Item

MAIN = (
    Item("section 2", "section", "pReLU nets: 2-homogeneous, trained by gradient flow"),
    Item("eq 1", "equation", "The loss, a sum over the training points"),
    Item("section 3", "section", "Claim: F and F^(p) are pReLU nets of any groups of neurons"),
    Item("Prop 1", "proposition", "F and F^(p) are accurate on clean data"),
    Item("Thm 1", "theorem", "F is not robust at O(1/sqrt K), F^(p) is at O(1)"),
    Item("Remark 1", "remark", "Rescaling and permuting neurons keeps the function"),
    Item("Remark 2", "remark", "1/sqrt K and sqrt 2/2 are the critical radii"),
    Item("Conjecture 1", "conjecture", "Gradient flow ends near F (p = 1) or F^(p) (p >= 3)"),
    Item("section 4.1", "section", "An alignment phase, then a fitting phase"),
    Item("section 4.2", "section", "Balanced start and simplified dataset"),
    Item("eq 4", "equation", "The balanced start"),
    Item("Lemma 1", "lemma", "Small neurons turn along x^(p)(w)"),
    Item("eq 5", "equation", "x^(p)(w)", restates="Lemma 1"),
    Item("Thm 2", "theorem", "Alignment bias: means for p = 1, subclasses for p >= 3"),
    Item("section 5.1", "section", "SGD on the mixture"),
    Item("Fig 1", "figure", "Neurons in R^3 before, during and after"),
    Item("Fig 2", "figure", "K = 10: distance, contributions, cosines, robust accuracy"),
)

IMAGES = (
    Item("section 5.2.1", "section", "Parity of MNIST digits"),
    Item("Fig 3", "figure", "Parity of MNIST digits"),
    Item("Fig 4", "figure", "Caltech256 features in ten superclasses"),
    Item("Fig 6", "figure", "MNIST digits"),
    Item("Table 1", "table", "Robust accuracy under attacks of three norms"),
)

APPENDIX = (
    Item("Algorithm 1", "algorithm", "Estimating the distance to F or F^(p)"),
    Item("Fig 5", "figure", "K = 20: distance, contributions, cosines, robust accuracy"),
    Item(
        "Lemma 2",
        "lemma",
        "P(E1) <= P(E1 and E2) + P(not E2)",
        why_not="a law of probability",
    ),
    Item(
        "Lemma 3",
        "lemma",
        "Hoeffding's inequality for a Gaussian",
        why_not="a textbook bound, with C = 1/2; what it is used for is measured",
    ),
    Item("Thm 3", "theorem", "F is robust below 1/sqrt K, F^(p) is not beyond sqrt 2/2"),
    Item("section D.1", "section", "Alignment bias in the plane"),
    Item("Fig 7", "figure", "Alignment bias in the plane"),
    Item("Lemma 4", "lemma", "Weights and outputs stay small up to T"),
    Item("Lemma 5", "lemma", "sum z^q sum z^(p+1-q) is convex around (p+1)/2"),
    Item("Lemma 6", "lemma", "|-dl/df - y| <= 2 |f|"),
    Item("eq 60", "equation", "The error of Lemma 1 by the outputs"),
    Item("eq 61", "equation", "Theorem 2 near the mean of the positive centres"),
    Item("eq 62", "equation", "Theorem 2 near a positive centre"),
    Item("eq 63", "equation", "The mirror image for negative neurons", restates="eq 61"),
    Item("eq 64", "equation", "The mirror image for negative neurons", restates="eq 62"),
)

CONTENTS = (*MAIN, *IMAGES, *APPENDIX)
