"""What the text leaves open, what does not come out at these sizes, and the claims that show it."""

from unmix.papers.contents import Finding

FINDINGS = (
    Finding(
        "lambda = logloglog(d)/d is too large",
        "At d = 50 and 100 the printed regulariser is 30 and 40 times ours and costs a tenth of "
        "the clean accuracy; at d = 50 it costs a fiftieth with the cubic term in the printed l3 "
        "norm, which is smaller. The proof needs lambda >= 1/d, and a triple logarithm reaches 1 "
        "at d = 4 million.",
        ("literal-lambda", "literal-cubic", "thm-5.1b"),
    ),
    Finding(
        "A sign in the tangent kernel",
        "Def 5.5 has a minus between the two indicators. Every function of that kernel is even, "
        "the labels are odd, and its clean error is 1/2. The gradient of the net has a plus.",
        ("tangent-printed", "tangent-printed-clean", "tangent-clean"),
    ),
    Finding(
        "A radius that is there at once",
        "Section 4.2 says that adversarial training usually starts from random weights. Near such "
        "a start FGM of the full radius destroys the signal before any neuron has learned one; "
        "with a radius that waits and rises the end is that of clean weights. On the way dense "
        "mixtures do accumulate, as long as the radius is small.",
        ("no-warm-up", "table-1-start", "fig-9-never", "fig-9-scratch"),
    ),
    Finding(
        "Small changes and large gains at once",
        "Thm 5.3 (c) asks for a change o(1), Thm 5.3 for a gain that grows. The dense mixture has "
        "relative norm kappa/sqrt(d), its harm is kappa^1.5/sqrt(d): with k = sqrt(d) the first "
        "does not fall, so neither can the change.",
        ("thm-5.3c", "thm-5.3-gain"),
    ),
    Finding(
        "Sure tickets for every feature",
        "Lemma B.2 needs d^(small) >> 1. Here a fifth of the features have a sure ticket, and "
        "nine in ten are won nevertheless, by neurons whose ticket was only potential.",
        ("lemma-B.2-sure", "sec-6.1-covered"),
    ),
    Finding(
        "Robust accuracy is not near 1",
        "The margins |<w*, z>| have a Gaussian-like mass near 0, which even the pure rule cannot "
        "defend. Robust accuracies are therefore judged in units of that rule's.",
        ("thm-5.3b",),
    ),
    Finding(
        "The purified net does not follow the clean one's outputs",
        "Frozen at x, the purified net at x + delta is itself to five per cent at quick and "
        "half a per cent at paper size (Lemma F.11). With the pure parts of the clean neurons "
        "it should be the clean net at x (Lemma F.12), and is off by two thirds of it and more: "
        "what is off N_i, o(1) in the limit, carries the larger part of what the clean net "
        "says.",
        ("lemma-F.11", "lemma-F.12", "lemma-F.15"),
    ),
    Finding(
        "Incoherent dictionaries, trivially",
        "With a tenth more features than dimensions everything is as with orthonormal ones. With "
        "half as many again the universal perturbation is as strong and adversarial training "
        "still helps, but the mixture is no longer in the neurons that hold a feature.",
        ("incoherent-mild-nu", "incoherent-frame-nu", "incoherent-frame-universal"),
    ),
)
