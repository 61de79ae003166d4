"""Every statement and figure of the paper and of the slides on it; the paper has no tables."""

from unmix.papers.contents import Item

DEFINED = "a definition, which the code takes over"
SAMPLED = "what the sampler does by construction; its moments are tested"
WORDS = "a discussion in words"

MAIN = (
    Item("Def 3.1", "definition", "Multi-cluster data", why_not=DEFINED),
    Item("Assumption 3.2", "assumption", "Orthogonal features of one length", why_not=SAMPLED),
    Item("Assumption 3.3", "assumption", "Nearly balanced labels", why_not=SAMPLED),
    Item("Def 4.1", "definition", "The averaging net f_FA", why_not=DEFINED),
    Item("Remark 4.2", "remark", "The average direction fools f_FA at radius sqrt(d/k)"),
    Item(
        "Assumption 4.3",
        "assumption",
        "Choices of hyper-parameters: d >= k^10, n >= k^7 and more",
        why_not="a premise, met at no size that can be run; `unmix run averaging:binary` lists by "
        "what factor each condition is missed",
    ),
    Item("Remark 4.4", "remark", "Why these hyper-parameters", why_not=WORDS),
    Item("Thm 4.5", "theorem", "GD on two labels averages features, and is not robust"),
    Item("Thm 4.6", "theorem", "The trained net is near a multiple of f_FA on the sphere"),
    Item("Thm 4.7", "theorem", "GD on k labels decouples features, and is robust"),
    Item("Prop 4.8", "proposition", "Accurate k-class nets need not be robust"),
    Item("section 3", "section", "The best possible radius is of order sqrt(d)"),
    Item("section 4.2", "section", "Finer labels make the net more robust"),
    Item("section 5.1", "section", "Derivatives l' of the loss"),
    Item("eq 4", "equation", "lambda and sigma grow in proportion"),
    Item("Lemma 5.1", "lemma", "Weight decomposition"),
    Item("Lemma 5.2", "lemma", "Updates of the coefficients"),
    Item("Lemma 5.3", "lemma", "Training margins stay balanced"),
    Item("Remark 5.4", "remark", "Where the ratio method comes from", why_not=WORDS),
    Item("eq 6", "equation", "Ratios of loss derivatives stay bounded"),
    Item("Lemma 5.5", "lemma", "Every point activates all neurons of its label"),
    Item(
        "Remark 5.6",
        "remark",
        "Lemmas 5.3 and 5.5 are proved together",
        why_not="how Lemma B.7 is proved, which is measured",
    ),
    Item("section 5.3", "section", "The proof in five steps"),
    Item("eq 11", "equation", "Noise coefficients against signal coefficients"),
    Item("eq 17", "equation", "One step of a margin"),
)

APPENDIX_A = (
    Item("Def A.1", "definition", "Def 3.1 again", why_not=DEFINED),
    Item("Assumption A.2", "assumption", "Assumption 3.2 again", why_not=SAMPLED),
    Item("Assumption A.3", "assumption", "Assumption 3.3 again", why_not=SAMPLED),
    Item(
        "Assumption A.4",
        "assumption",
        "Choices of hyper-parameters, all of them",
        why_not="a premise, as Assumption 4.3",
    ),
    Item("Remark A.5", "remark", "Remark 4.4 again", why_not=WORDS),
    Item("Prop A.6", "proposition", "Seven properties of the training set"),
    Item("Remark A.7", "remark", "What Prop A.6 means", why_not=WORDS),
    Item(
        "Lemma A.8",
        "lemma",
        "Tail of a Gaussian inner product",
        why_not="a textbook bound; what it is used for is measured as Prop A.6 (3) and (4)",
    ),
    Item("Lemma A.9", "lemma", "Concentration of the extremes of Gaussians"),
    Item("Prop A.10", "proposition", "Size of the initial weights and biases"),
    Item("Def A.11", "definition", "Points on which a neuron starts active", why_not=DEFINED),
    Item("Prop A.12", "proposition", "Every neuron starts active on enough points"),
    Item("Lemma A.13", "lemma", "Initial pre-activations are smaller than a step"),
    Item("Lemma A.14", "lemma", "Loss derivatives at the start"),
    Item("Lemma A.15", "lemma", "Loss derivatives lie in [-1, 0]"),
)

APPENDIX_B = (
    Item("Lemma B.1", "lemma", "All own neurons are active after one step"),
    Item("Lemma B.2", "lemma", "Weight decomposition", restates="Lemma 5.1"),
    Item("Cor B.3", "corollary", "Updates of the coefficients", restates="Lemma 5.2"),
    Item("Cor B.4", "corollary", "lambda and sigma grow in proportion"),
    Item("Cor B.5", "corollary", "Signs of the coefficients"),
    Item("Lemma B.6", "lemma", "Ratio of loss derivatives from a margin gap"),
    Item("Lemma B.7", "lemma", "The induction: eight properties up to T_0"),
    Item(
        "Remark B.8",
        "remark",
        "sigma grows like the logarithm of time",
        why_not="a reading of Lemma B.7 (1), which is measured",
    ),
    Item(
        "Lemma B.9",
        "lemma",
        "Updates without the indicator",
        why_not="Cor B.3 with every indicator at 1, which is measured as Lemma 5.5",
    ),
    Item("Lemma B.10", "lemma", "Biases stay small"),
    Item("Lemma B.11", "lemma", "<w, mu> is lambda, nearly"),
    Item("Lemma B.12", "lemma", "<w, xi> is sigma, nearly"),
    Item("Lemma B.13", "lemma", "A neuron's output from its coefficients"),
    Item("Lemma B.14", "lemma", "A margin from its coefficients"),
    Item(
        "Cor B.15",
        "corollary",
        "A margin gap from its coefficients",
        why_not="a difference of two margins of Lemma B.14, which is measured",
    ),
    Item("Lemma B.16", "lemma", "Off-class coefficients stay small"),
    Item("Lemma B.17", "lemma", "Margin gap within a cluster", restates="Lemma B.7"),
    Item("Lemma B.18", "lemma", "Margin gap between clusters", restates="Lemma B.7"),
    Item("Lemma B.19", "lemma", "Noise coefficients are alike"),
    Item("Lemma B.20", "lemma", "A margin from its noise coefficients"),
    Item("Lemma B.21", "lemma", "A loss derivative from a noise coefficient"),
    Item("Thm B.22", "theorem", "Feature averaging", restates="Thm 4.5"),
    Item("Lemma B.23", "lemma", "lambda grows like the logarithm of T"),
    Item("Lemma B.24", "lemma", "Signal coefficients are alike"),
    Item("Lemma B.25", "lemma", "Weights are near the averages", restates="Thm 4.5"),
    Item("Lemma B.26", "lemma", "Fresh noise moves no pre-activation"),
    Item("Thm B.27", "theorem", "Distance to f_FA", restates="Thm 4.6"),
)

APPENDIX_C = (
    Item(
        "Prop C.1",
        "proposition",
        "Size of the initial weights",
        why_not="Prop A.10 for another number of neurons; the probe `assumptions` takes it on "
        "every run",
    ),
    Item("Def C.2", "definition", "Points on which a neuron starts active", why_not=DEFINED),
    Item("Prop C.3", "proposition", "Every neuron starts active on enough points"),
    Item("Lemma C.4", "lemma", "Loss derivatives at the start"),
    Item("Lemma C.5", "lemma", "All own neurons are active after one step"),
    Item("Lemma C.6", "lemma", "Weight decomposition"),
    Item("Cor C.7", "corollary", "lambda and sigma grow in proportion"),
    Item("Cor C.8", "corollary", "Updates of the coefficients"),
    Item("Cor C.9", "corollary", "Signs of the coefficients"),
    Item("Lemma C.10", "lemma", "The induction: eight properties up to T_0"),
    Item("Lemma C.11", "lemma", "<w, mu> is lambda, nearly"),
    Item("Lemma C.12", "lemma", "<w, xi> is sigma, nearly"),
    Item("Lemma C.13", "lemma", "A neuron's output from its coefficients"),
    Item("Lemma C.14", "lemma", "A margin from its coefficients"),
    Item(
        "Cor C.15",
        "corollary",
        "A margin gap from its coefficients",
        why_not="a difference of two margins of Lemma C.14, which is measured",
    ),
    Item("Lemma C.16", "lemma", "Off-class coefficients stay small"),
    Item(
        "Lemma C.17",
        "lemma",
        "Outputs of the other classes stay small",
        why_not="follows from Lemma C.13 and Cor C.9, which are measured",
    ),
    Item("Lemma C.18", "lemma", "Ratio of loss derivatives from a margin gap"),
    Item("Lemma C.19", "lemma", "Noise coefficients are alike"),
    Item(
        "Lemma C.20",
        "lemma",
        "A margin from its noise coefficients",
        why_not="the premise of Lemma C.21, which is measured; Lemma B.20 for k classes",
    ),
    Item("Lemma C.21", "lemma", "A loss derivative from a noise coefficient"),
    Item("Thm C.22", "theorem", "Feature decoupling", restates="Thm 4.7"),
    Item("Lemma C.23", "lemma", "lambda grows like the logarithm of T"),
    Item("Lemma C.24", "lemma", "Signal coefficients are alike"),
    Item("Lemma C.25", "lemma", "Weights are near the centres", restates="Thm 4.7"),
    Item("Lemma C.26", "lemma", "Fresh noise moves no pre-activation"),
)

APPENDIX_D = (
    Item("Thm D.1", "theorem", "f_FA is accurate"),
    Item("Thm D.2", "theorem", "f_FA is not robust, whatever its biases"),
    Item("Thm D.3", "theorem", "A robust two-layer net exists: f_FD"),
    Item("Thm D.4", "theorem", "Accurate and not robust with k classes", restates="Prop 4.8"),
)

FIGURES = (
    Item("Fig 1", "figure", "Averaging and decoupling classifiers"),
    Item("Fig 2", "figure", "Cosines of weights and features"),
    Item("Fig 3", "figure", "Robustness from finer labels"),
    Item(
        "Fig 4",
        "figure",
        "A construction of other authors",
        why_not="a drawing of another paper's lower bound; nothing in it is measured",
    ),
    Item("section E.1", "section", "Ablations on synthetic data"),
    Item("Fig 5", "figure", "The number of samples"),
    Item("Fig 6", "figure", "The learning rate"),
    Item("Fig 7", "figure", "The initialisation"),
    Item("Fig 8", "figure", "The signal-to-noise ratio"),
    Item("Fig 9", "figure", "Correlated features"),
    Item("Fig 10", "figure", "Correlation of CIFAR-10 embeddings"),
)

SLIDES = (
    Item("slides, Def 1.1", "definition", "The averaging net f_FA", why_not=DEFINED),
    Item("slides, Def 2.1", "definition", "Multi-cluster data", why_not=DEFINED),
    Item("slides, Def 2.2", "definition", "The two-layer net", why_not=DEFINED),
    Item("slides, Def 2.3", "definition", "Loss and gradient descent", why_not=DEFINED),
    Item("slides, Def 2.4", "definition", "When a neuron is active", why_not=DEFINED),
    Item("slides, Def 2.5", "definition", "Clean accuracy", why_not=DEFINED),
    Item("slides, Def 2.6", "definition", "Robust accuracy", why_not=DEFINED),
    Item(
        "slides, Assumption 1", "assumption", "Orthogonal features of one length", why_not=SAMPLED
    ),
    Item("slides, Assumption 2", "assumption", "Nearly balanced labels", why_not=SAMPLED),
    Item(
        "slides, Assumption 3",
        "assumption",
        "Choices of hyper-parameters",
        why_not="a premise, as Assumption 4.3",
    ),
    Item("slides, Thm 1", "theorem", "Feature averaging", restates="Thm 4.5"),
    Item("slides, Lemma 1", "lemma", "Weight decomposition", restates="Lemma 5.1"),
    Item("slides, Lemma 2", "lemma", "Recursions that divide by squared norms"),
    Item("slides, Lemma 3", "lemma", "Activation stability", restates="Lemma 5.5"),
    Item(
        "slides, Lemma 4",
        "lemma",
        "The same recursions without the indicator",
        restates="slides, Lemma 2",
    ),
    Item("slides, Lemma 5", "lemma", "Margin balance", restates="Lemma 5.3"),
    Item("slides, Thm 2", "theorem", "f_FA is accurate", restates="Thm D.1"),
    Item("slides, Thm 3", "theorem", "Averaging is not robust", restates="Thm 4.5"),
    Item("slides, Thm 4", "theorem", "Feature decoupling", restates="Thm 4.7"),
    Item("slides, Lemma 6", "lemma", "<w, mu> is lambda, nearly", restates="Lemma C.11"),
    Item("slides, Lemma 7", "lemma", "Off-class coefficients stay small", restates="Lemma C.16"),
    Item("slides, Lemma 8", "lemma", "Weights are near the centres", restates="Thm 4.7"),
    Item("slides, Lemma 9", "lemma", "Fresh noise moves nothing", restates="Lemma C.26"),
    Item("slides, Lemma 10", "lemma", "lambda grows like ln T", restates="Lemma C.23"),
    Item("slides, Lemma 11", "lemma", "Signal coefficients are alike", restates="Lemma C.24"),
    Item(
        "slides, Lemma 12",
        "lemma",
        "epsilon = o(k^(-5/2))",
        why_not="a choice of hyper-parameters; at the baseline epsilon is 58",
    ),
    Item("slides, Thm 5", "theorem", "Robust for k labels", restates="Thm 4.7"),
    Item("slides, Fig 2", "figure", "Cosines of weights and features", restates="Fig 2"),
    Item("slides, Fig 3", "figure", "Robustness from finer labels", restates="Fig 3"),
)

CONTENTS = (*MAIN, *APPENDIX_A, *APPENDIX_B, *APPENDIX_C, *APPENDIX_D, *FIGURES, *SLIDES)
