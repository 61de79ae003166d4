"""Every theorem, lemma, figure and table of the paper, in its order."""

from unmix.papers.contents import Item

MAIN = (
    Item(
        "Assumption 2.1",
        "assumption",
        "Codes are sparse, symmetric and independent",
        why_not="what the sampler does by construction; its moments are tested",
    ),
    Item("Fact 2.2", "lemma", "A code has Theta(k) nonzero entries"),
    Item("section 3", "section", "Linear learners are not robust, thresholded ones are"),
    Item("section 4.1", "section", "Algorithm 1 and its constants"),
    Item("section 4.2", "section", "Algorithm 2 and where it starts"),
    Item("Thm 5.1", "theorem", "Clean training is accurate and not robust"),
    Item("Thm 5.2", "theorem", "Neurons are pure features plus dense mixtures"),
    Item("eq 5.1", "equation", "The dense mixture's size"),
    Item("Thm 5.3", "theorem", "Adversarial training is robust and changes little"),
    Item("section 5.1", "section", "Purification and the density of perturbations"),
    Item("Thm 5.4", "theorem", "The same in l_inf"),
    Item("Def 5.5", "definition", "The tangent kernel"),
    Item("Thm 5.6", "theorem", "Tangent kernels are not robust"),
    Item("Cor 5.7", "corollary", "Low-degree polynomials are not robust"),
    Item("section 6.1", "section", "Lottery tickets"),
    Item("section 6.2", "section", "Where dense mixtures come from"),
    Item("eq 6.1", "equation", "The dense mixture's size, again", restates="eq 5.1"),
    Item("section 8.2", "section", "Purification layer by layer"),
    Item("section 8.3", "section", "Sparse reconstruction"),
)

APPENDIX = (
    Item(
        "Lemma A.2",
        "lemma",
        "Polynomially many samples suffice",
        why_not="fresh points at every step stand for N >= poly(d)",
    ),
    Item("Lemma B.2", "lemma", "Tickets at the start"),
    Item("Thm C.1", "theorem", "Phase I"),
    Item("Thm C.2", "theorem", "Phase II"),
    Item(
        "Lemma C.4",
        "lemma",
        "Pre-activations of neurons without a ticket",
        why_not="a step of the proof of C.8 to C.10",
    ),
    Item("Lemma C.5", "lemma", "Gradient bound", why_not="a step of the proof of C.8 to C.10"),
    Item("Lemma C.7", "lemma", "Activations are rare", why_not="a step of the proof of C.8"),
    Item("Lemma C.8", "lemma", "Growth of a ticket's feature"),
    Item("Lemma C.9", "lemma", "Largest growth"),
    Item("Lemma C.10", "lemma", "Growth without a ticket"),
    Item("Lemma C.11", "lemma", "Growth of noise", why_not="the settings here have no noise"),
    Item("Lemma C.14", "lemma", "Growth in phase II"),
    Item("Lemma C.18", "lemma", "Growth coupling"),
    Item("Lemma C.20", "lemma", "Coordinate Lipschitzness"),
    Item("Lemma C.22", "lemma", "Loss from below"),
    Item("Thm D.1", "theorem", "The clean objective converges"),
    Item("Lemma D.6", "lemma", "Main coupling"),
    Item("Thm E.1", "theorem", "Why clean training is not robust"),
    Item("Lemma E.2", "lemma", "Common direction among neurons"),
    Item("Thm F.1", "theorem", "Adversarial training, l2", restates="Thm 5.3"),
    Item("Cor F.2", "corollary", "The same for FGM", restates="Thm 5.3"),
    Item("Cor F.3", "corollary", "A window of k"),
    Item("Thm F.4", "theorem", "Adversarial training, l_inf", restates="Thm 5.4"),
    Item("Lemma F.11", "lemma", "Robust coupling"),
    Item("Thm G.1", "theorem", "Tangent kernels, precisely"),
    Item("Lemma H.1", "lemma", "Small-ball probability"),
)

PICTURES = (
    *(
        Item(f"Fig {n}", "figure", title)
        for n, title in (
            (1, "AlexNet's first layer"),
            (2, "Local purification in cosines"),
            (3, "Linear and ReLU activation"),
            (4, "Images from sparse features"),
            (5, "Activation sparsity"),
            (6, "Deep features"),
            (7, "Adversarial perturbations"),
            (8, "Lottery tickets"),
            (9, "Pure and dense features"),
            (10, "Deep features, clean and robust"),
            (11, "Features layer by layer"),
            (12, "Sparse reconstruction"),
            (13, "Attackers compared"),
        )
    ),
    Item("Table 1", "table", "Robust accuracies of ResNet-34"),
)

CONTENTS = MAIN + APPENDIX + PICTURES
