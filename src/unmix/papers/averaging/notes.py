"""Where the texts disagree or leave something open, and which claim decides it."""

NOTES = (
    (
        "The slides contradict the paper",
        "The slides divide by |mu|^2 and |xi|^2 in both recursions, the paper multiplies. The "
        "paper is right: its recursion rebuilds the weights to rounding (lemma-5.1), the "
        "slides' explains none of them (contradiction-c1). Both main text and slides also drop "
        "the label from l'; only the appendix's l' makes the recursion true (contradiction-c2).",
    ),
    (
        "A factor",
        "Eq (17) prints eta/(2n); with the network's own 1/m it is eta/(nm), so the printed one "
        "is off by m/2 (eq-17, contradiction-c4).",
    ),
    (
        "Not strict",
        "Cor B.5 and C.9 print < 0 and iff. Almost half of the off-class sigma are exactly 0, "
        "so only <= 0 can hold (cor-b.5, contradiction-c6).",
    ),
    (
        "o or Theta",
        "After Thm 4.5 the net is called only o(sqrt(d/k))-robust; its radius is "
        "Theta(sqrt(d/k)), close to 1 times it (radius-is-theta). The slides' radius pd/k is a "
        "lost square root.",
    ),
    (
        "Signs",
        "The perturbations in the proofs of Thms 4.5 and D.4 are written for y = +1; both need "
        "the label as a factor. The slides write success as equal signs; it is unequal ones.",
    ),
    (
        "Vacuous constants",
        "At the paper's own experiment epsilon is about 58 and the lemmas' bounds (65 epsilon, "
        "204 epsilon) bind nothing, so they are judged as trends in n and d. The attack "
        "constants 4 sqrt(d/k) and sqrt(d)/10 separate only for k > 1600; the radii do from k = "
        "3.",
    ),
    (
        "A learning rate that is not necessary",
        "Appendix E.1 concludes that a small learning rate is necessary for averaging. With the "
        "stated formulas it is not: at 0.01 the averages are as good as at 0.001 (e1-eta-"
        "necessary). A small initialisation is (e1-init-necessary).",
    ),
    (
        "What decides robustness",
        "Decoupled weights alone do not: with no bias f_FD has radius 1/sqrt(1 + |J|) "
        "(decoupling-zero-plus). A threshold or a softmax is needed; the best threshold is -(1 "
        "- 1/sqrt 2) d, not -d/2 (decoupling-best-plus).",
    ),
)
