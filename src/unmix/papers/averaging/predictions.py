"""What closed forms say of the trainings, and which nets stand in the table across papers."""

from unmix.papers.base import Contender, Prediction

PREDICTIONS = (
    Prediction("margin, two labels", "binary", "laws:margin"),
    Prediction("margin, ten labels", "k-class", "laws:margin"),
    Prediction("off-class ratio, two labels", "binary", "laws:off"),
    Prediction("off-class ratio, ten labels", "k-class", "laws:off"),
    Prediction("own cosine, two labels", "binary", "laws:cosine"),
    Prediction("own cosine, ten labels", "k-class", "laws:cosine"),
    Prediction("weight error, two labels, balanced", "binary-balanced", "laws:error"),
    Prediction("radius, two labels", "binary", "laws:radius"),
)

CONTENDERS = (
    Contender("ReLU, two labels, gradient descent", "binary"),
    Contender("ReLU, ten labels, gradient descent", "k-class"),
    Contender("f_FA, built", "FA-k10"),
    Contender("f_FD with bias -d/2, built", "FD-half"),
    Contender("f_FD with the best bias, built", "FD-best"),
    Contender("accurate, not robust (Prop 4.8), built", "NRMC-k10"),
    Contender("ReLU, two labels, large initialisation", "init=0.01"),
)
