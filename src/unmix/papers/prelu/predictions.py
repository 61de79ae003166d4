"""What closed forms say of the trainings, and which nets stand in the table across papers."""

from unmix.papers.base import Contender, Prediction

PREDICTIONS = (
    Prediction("escape time, p = 3", "balanced-p=3", "dynamics:escape"),
    Prediction("escape time, p = 6", "balanced-p=6", "dynamics:escape"),
    Prediction("margin, p = 1", "reduced-p=1", "dynamics:margin"),
    Prediction("margin, p = 3", "reduced-p=3", "dynamics:margin"),
    Prediction("margin of class + less −, p = 1", "even-p=1", "dynamics:class_margin"),
    Prediction("distance at the centres, p = 3", "reduced-p=3", "dynamics:spread"),
)

CONTENDERS = (
    Contender("ReLU (p = 1), SGD from a small start", "sgd-p=1"),
    Contender("pReLU, p = 3, SGD from a small start", "sgd-p=3"),
    Contender("F, built", "F-K10,alpha=0.1"),
    Contender("F^(1), built", "F1-K10,alpha=0.1"),
    Contender("F^(3), built", "F3-K10,alpha=0.1"),
)
