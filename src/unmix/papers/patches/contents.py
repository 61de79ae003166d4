"""Every statement, figure and table of the paper."""

from unmix.papers.contents import Item

SAME = "the proof of the statement that it restates, with noise; measured there"

MAIN = (
    Item("Def 2.1", "definition", "Robust and non-robust features",
         why_not="a definition; the features are coordinate axes here, too"),
    Item("Def 2.2", "definition", "The patch data distribution",
         why_not="a definition; `data.kind = patches`"),
    Item("Assumption 2.3", "assumption", "Robust features are stronger, the others denser"),
    Item("Remark 2.4", "remark", "What earlier work calls robust features",
         why_not="a comparison of words with other papers"),
    Item("section 2.4", "section", "Standard training and its start"),
    Item("section 2.5", "section", "Adversarial training, its radius and its losses"),
    Item("Remark 2.5", "remark", "The general form of the attack in training"),
    Item("Prop 3.1", "proposition", "A non-robust global minimum exists"),
    Item("Prop 3.2", "proposition", "A robust global minimum exists"),
    Item("Def 4.1", "definition", "Feature learning accuracy"),
    Item("Remark 4.2", "remark", "It generalises the weight-feature correlation",
         why_not="a remark on Def 4.1"),
    Item("Thm 4.3", "theorem", "Standard training converges to non-robust global minima"),
    Item("Thm 4.4", "theorem", "Adversarial training converges to robust global minima"),
    Item("Lemma 5.1", "lemma", "Recursion of A and B in standard training"),
    Item("Lemma 5.2", "lemma", "Recursion of A and B in adversarial training"),
    Item("section 5.2", "section", "The two phases of adversarial training"),
    Item("section 6.1", "section", "Simulations on synthetic data"),
    Item("section 6.2", "section", "Experiments on real images"),
    Item("Fig 1", "figure", "Overview of the paper"),
    Item("Fig 2", "figure", "The patch data"),
    Item("Fig 3", "figure", "Simulations on synthetic data"),
    Item("Fig 4", "figure", "Feature learning on real images"),
)  # fmt: skip

APPENDIX_A = (
    Item("Fig 5", "figure", "Feature learning on three data sets"),
    Item("Table 1", "table", "Feature learning accuracies on real images"),
    Item("Table 2", "table", "Targeted attacks by robust and non-robust features"),
    Item("Def A.1", "definition", "Feature learning accuracy", restates="Def 4.1"),
    Item("Remark A.2", "remark", "Remark 4.2 again", why_not="a remark on Def 4.1"),
)

APPENDIX_BC = (
    Item("Lemma B.1", "lemma", "Extremes of Gaussians"),
    Item("Lemma B.2", "lemma", "The tensor power method"),
    Item("Assumption B.3", "assumption", "Choices of hyper-parameters",
         why_not="asymptotic; its sigma_0 = 1/sqrt(d) is the reading adv-xavier"),
    Item("Thm C.1", "theorem", "Prop 3.1 again", restates="Prop 3.1"),
    Item("Thm C.2", "theorem", "Prop 3.2 again", restates="Prop 3.2"),
)  # fmt: skip

APPENDIX_D = (
    Item("Thm D.1", "theorem", "Thm 4.3 without noise"),
    Item("Lemma D.2", "lemma", "Weight decomposition"),
    Item("Lemma D.3", "lemma", "Coefficients at the start"),
    Item("Lemma D.4", "lemma", "Recursion of A, B, C, D", restates="Lemma 5.1"),
    Item("Lemma D.5", "lemma", "Diagonal logits"),
    Item("Lemma D.6", "lemma", "Non-diagonal logits"),
    Item("Lemma D.7", "lemma", "C and D stay small"),
    Item("Lemma D.8", "lemma", "Recursion in the polynomial part",
         why_not="Lemma D.4 with s' = (./rho)^(q-1); measured as Lemmas 5.1 and B.2"),
    Item("Lemma D.9", "lemma", "A is small when B arrives"),
    Item("Lemma D.10", "lemma", "A is small when F reaches log d"),
    Item("Lemma D.11", "lemma", "F = O(log d) and A is small to the end"),
    Item("Lemma D.12", "lemma", "Standard accuracy is good"),
    Item("Lemma D.13", "lemma", "Non-robust features are learned well"),
    Item("Lemma D.14", "lemma", "Standard training is not robust"),
    Item("Thm D.15", "theorem", "Thm 4.4 without noise"),
    Item("Lemma D.16", "lemma", "Weight decomposition, adversarial"),
    Item("Lemma D.17", "lemma", "Coefficients of attacked points"),
    Item("Lemma D.18", "lemma", "Recursion of all coefficients"),
    Item("Lemma D.19", "lemma", "Diagonal logits, adversarial"),
    Item("Lemma D.20", "lemma", "Non-diagonal logits, adversarial"),
    Item("Lemma D.21", "lemma", "C and D stay small, adversarial"),
    Item("Lemma D.22", "lemma", "Recursion of A and B", restates="Lemma 5.2"),
    Item("Lemma D.23", "lemma", "A is small when B stops",
         why_not="Lemma B.2 with A and B exchanged in print; measured as Lemma B.2"),
    Item("Lemma D.24", "lemma", "B is small when A arrives"),
    Item("Lemma D.25", "lemma", "B is small when F reaches log d"),
    Item("Lemma D.26", "lemma", "F = O(log d) and B is small to the end"),
    Item("Lemma D.27", "lemma", "Robust features are learned well"),
    Item("Lemma D.28", "lemma", "Adversarial training is robust"),
)  # fmt: skip

APPENDIX_E = (
    Item("Thm E.1", "theorem", "Thm 4.3 again", restates="Thm 4.3"),
    Item("Lemma E.2", "lemma", "Weight decomposition with noise",
         why_not="P N noise vectors in d < P N dimensions have no coefficients of their own"),
    Item("Lemma E.3", "lemma", "Noise correlations stay small"),
    Item("Lemma E.4", "lemma", "One step of a noise correlation", why_not=SAME),
    Item("Lemma E.5", "lemma", "Outputs of a class stay balanced"),
    Item("Lemma E.6", "lemma", "The sum of loss derivatives"),
    Item("Lemma E.7", "lemma", "Sizes in the end, standard"),
    Item("Thm E.8", "theorem", "Thm 4.4 again", restates="Thm 4.4"),
    Item("Lemma E.9", "lemma", "Weight decomposition with noise, adversarial",
         why_not="P N noise vectors in d < P N dimensions have no coefficients of their own"),
    Item("Lemma E.10", "lemma", "Noise correlations stay small, adversarial"),
    Item("Lemma E.11", "lemma", "Sizes in the end, adversarial"),
)  # fmt: skip

CONTENTS = (*MAIN, *APPENDIX_A, *APPENDIX_BC, *APPENDIX_D, *APPENDIX_E)
