"""Where the texts disagree or leave something open, and which claims decide it."""

from unmix.papers.contents import Finding

FINDINGS = (
    Finding(
        "The slides contradict the paper",
        "The slides divide by |mu|^2 and |xi|^2 in both recursions, the paper multiplies. The "
        "paper is right: its recursion rebuilds the weights to rounding, the slides' explains "
        "none of them. Both main text and slides also drop the label from l'; only the "
        "appendix's l' makes the recursion true.",
        ("lemma-5.1", "contradiction-c1", "contradiction-c2"),
    ),
    Finding(
        "A factor",
        "Eq (17) prints eta/(2n); with the network's own 1/m it is eta/(nm), so the printed one "
        "is off by m/2.",
        ("eq-17", "contradiction-c4"),
    ),
    Finding(
        "Not strict",
        "Cor B.5 and C.9 print < 0 and iff. Almost half of the off-class sigma are exactly 0, "
        "so only <= 0 can hold.",
        ("cor-b.5", "cor-c.9", "contradiction-c6"),
    ),
    Finding(
        "o or Theta",
        "After Thm 4.5 the net is called only o(sqrt(d/k))-robust; its radius is "
        "Theta(sqrt(d/k)), close to 1 times it. The slides' radius pd/k is a lost square root.",
        ("radius-is-theta", "law-radius"),
    ),
    Finding(
        "Signs",
        "The perturbations in the proofs of Thms 4.5 and D.4 are written for y = +1; both need "
        "the label as a factor. The slides write success as equal signs; it is unequal ones.",
        ("thm-4.5.3-attack", "prop-4.8-attack"),
    ),
    Finding(
        "A probability is left out",
        "Lemma A.13 does not follow from A.4, and Prop A.12 leaves out the chance 1/(n/k + 1) "
        "that a neuron starts with no own point active. Such neurons die, and only they.",
        ("lemma-a.13", "prop-a.12", "dead-start", "dead-had-none"),
    ),
    Finding(
        "Vacuous constants",
        "At the paper's own experiment epsilon is about 58 and the lemmas' bounds (65 epsilon, "
        "204 epsilon) bind nothing, so they are judged as trends in n and d. The attack "
        "constants 4 sqrt(d/k) and sqrt(d)/10 separate only for k > 1600; the radii do from k = "
        "3.",
        ("lemma-5.3", "lemma-c.10-gap", "thm-4.7.3-tenth"),
    ),
    Finding(
        "A learning rate that is not necessary",
        "Appendix E.1 concludes that a small learning rate is necessary for averaging. With the "
        "stated formulas it is not: at 0.01 the averages are as good as at 0.001. A small "
        "initialisation is.",
        ("e1-eta-necessary", "e1-init-necessary"),
    ),
    Finding(
        "What decides robustness",
        "Decoupled weights alone do not: with no bias f_FD has radius 1/sqrt(1 + |J|). A "
        "threshold or a softmax is needed; the best threshold is -(1 - 1/sqrt 2) d, not -d/2.",
        ("decoupling-zero-plus", "decoupling-best-plus", "decoupling-half-plus"),
    ),
)
