"""Where text, code and proofs disagree or leave something open, and which claims decide it."""

from unmix.papers.contents import Finding

FINDINGS = (
    Finding(
        "Theorem 2 needs the span",
        "Near the mean of the positive centres the rate of a neuron's cosine has the sign of "
        "eta^2 - (p-2) beta^2, with beta, eta its deviation inside and outside the span of the "
        "positive centres. The proof takes w inside it; there p >= 3 turns away. As printed, for "
        "any w, it fails: random directions turn towards the mean. The statement on subclass "
        "centres, printed for any p, fails for p = 1.",
        ("thm-2-mean-p=3", "thm-2-printed-p=3", "thm-2-sign-p=3", "thm-2-subclass-printed-p=1"),
    ),
    Finding(
        "Lemma 1 is one of the exponential loss",
        "Lemma 6 fails for the logistic loss, |dl/df| being 1/2 at f = 0; so does Lemma 1 as "
        "printed. With x^(p)/2 it holds. For the exponential loss the error falls almost like "
        "eps^2, faster than the stated O(eps).",
        ("lemma-6-logistic", "lemma-1-logistic", "lemma-1-logistic-corrected", "lemma-1-eps-p=1"),
    ),
    Finding(
        "The published robust curve flatters p = 3",
        "It is drawn by PGD from the clean point, of the mean exponential loss, last iterate. "
        "From a centre relu^3 shows no gradient towards opposite centres, so the attack stays "
        "put: at radius 0.75, where the union of attacks leaves nothing, it still reports most "
        "points robust. The critical radius is sqrt 2/2 for all that.",
        ("fig-2e-flattered", "fig-2e-published", "fig-2e-critical-p=3"),
    ),
    Finding(
        "The power, not the neurons",
        "Neurons on subclass centres alone are no remedy: with p = 1 they have radius "
        "1/sqrt(1 + K_opposite). For p >= 2 a certificate is in closed form, the difference of "
        "two p-norms over sqrt 2, and attacks meet it.",
        ("first-power", "critical-bracket", "suite-certificate-F3-K10,alpha=0.1"),
    ),
    Finding(
        "p-bar is a matter of time",
        "From a balanced start outputs reach 1 after K/(p(p-2) c0^(p-2)) + K ln(1/|w(0)|), with "
        "c0 the largest initial cosine. It exceeds any time as p grows; at the paper's D, h and "
        "time p = 8 learns nothing.",
        ("law-escape-p=3", "law-escape-p=4", "law-p-bar", "conj-1-too-large-p"),
    ),
    Finding(
        "What is left of the distance",
        "For p = 3 it is the spread of the subclasses' frequencies over the margin, which "
        "grows like ln T: equally frequent subclasses leave next to none, and more time or more "
        "points lower it slowly.",
        ("law-distance", "law-even", "reading-epochs-p=3"),
    ),
    Finding(
        "Phases overlap",
        "The text lets neurons keep their directions once fitting begins. For p = 1 they do; for "
        "p = 3 subclasses are learned one after the other, and neurons of late ones are still "
        "turning when the first output reaches 1.",
        ("phases-p=1", "phases-p=3"),
    ),
    Finding(
        "A union bound",
        "The proof of Thm 3 for F^(p) loses the K of a union bound in its last step: it gives "
        "4 K exp(...), the text prints 4. Both bounds are far above what is measured.",
        ("thm-3-F3-K10,alpha=1", "thm-3-F3-printed"),
    ),
    Finding(
        "Text and code train differently",
        "2e5 epochs in the text are 401 of 200 steps in the code, the sum of losses is a mean, "
        "the balanced start of the theory is a Gaussian one that is not balanced, and Algorithm "
        "1 fits c on data instead of the sphere. The code's readings are the default; with each "
        "of the others the net is near F or F^(3), too.",
        ("reading-epochs-p=1", "reading-sum-p=3", "reading-balanced-p=3", "reading-fit"),
    ),
)
