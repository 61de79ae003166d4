"""Feature averaging: GD on two-layer ReLU nets learns the average of a label's clusters.

`contents` what it states, `claims` what is judged, `findings` what came out, `settings` the
experiments, `measures` the measurements, `figures` the pictures, `predict` closed forms. Importing
this package imports no torch.
"""

from unmix.papers.averaging.claims import CLAIMS
from unmix.papers.averaging.claims.experiments import CLIP, RESNET
from unmix.papers.averaging.contents import CONTENTS
from unmix.papers.averaging.findings import FINDINGS
from unmix.papers.averaging.predictions import CONTENDERS, PREDICTIONS
from unmix.papers.averaging.story import STORY
from unmix.papers.base import FigureEntry, Paper

BIBTEX = """@article{li2024featureaveraging,
  title  = {Feature Averaging: An Implicit Bias of Gradient Descent Leading to Non-Robustness
            in Neural Networks},
  author = {Li, Binghui and Pan, Zhixuan and Lyu, Kaifeng and Li, Jian},
  year   = {2024}
}"""

ETAS = ("eta=0.1", "eta=0.01", "binary", "eta=0.0001")
INITS = ("init=0.01", "init=0.001", "init=0.0001", "binary")
SNRS = ("snr=0.5,alpha", "snr=0.5,sigma", "binary", "snr=2,alpha", "snr=2,sigma")
COSINES = ("cos=1e-05", "cos=0.001", "cos=0.09", "cos=0.3")
LADDERS = ("binary-k*", "k-class-k*", "NRMC-k*")
PREDICTED = ("binary", "k-class", "binary-balanced")

FIGURES = (
    FigureEntry("overview", "What two and ten labels teach", "overview", ("binary", "k-class")),
    FigureEntry("1", "Averaging and decoupling classifiers, and their boundaries", "boundaries"),
    FigureEntry("2a", "Two labels: neurons average", "cosines_binary", ("binary",)),
    FigureEntry("2b", "Ten labels: neurons decouple", "cosines_fine", ("k-class",)),
    FigureEntry("3-left", "Robust accuracy against radius", "curves", ("binary", "k-class")),
    FigureEntry(
        "4.2",
        "Remark 4.2: f_FA along the average direction",
        "remark",
        ("FA-k10",),
        place="Remark 4.2",
    ),
    FigureEntry("5", "Effect of the number of samples", "samples", ("binary", "n=*")),
    FigureEntry("6", "Effect of the learning rate", "rates", ETAS),
    FigureEntry("7", "Effect of the initialisation", "initial_scales", INITS),
    FigureEntry("8", "Effect of the signal-to-noise ratio", "noise_ratios", SNRS),
    FigureEntry("9", "Effect of the orthogonality condition", "centre_cosines", COSINES),
    FigureEntry("margin-law", "The margin law beside the training", "law", ("binary-long",)),
    FigureEntry("predictors", "Closed forms beside measurements", "predictors", PREDICTED),
    FigureEntry("scaling", "Radius against the number of clusters", "scaling", LADDERS),
    FigureEntry("granularity", "Radius against the number of labels", "granularity", ("labels=*",)),
    FigureEntry("2c", "CIFAR-10 embeddings, two labels", why_not=CLIP),
    FigureEntry("2d", "CIFAR-10 embeddings, ten labels", why_not=CLIP),
    FigureEntry("3-middle", "MNIST, ten and two labels", why_not=RESNET),
    FigureEntry("3-right", "CIFAR-10, ten and two labels", why_not=RESNET),
    FigureEntry("10", "Correlation of CIFAR-10 embeddings", why_not=CLIP),
)

PAPER = Paper(
    name="averaging",
    title="Feature Averaging: An Implicit Bias of Gradient Descent Leading to Non-Robustness "
    "in Neural Networks",
    authors="Binghui Li, Zhixuan Pan, Kaifeng Lyu, Jian Li",
    bibtex=BIBTEX,
    claims=CLAIMS,
    figures=FIGURES,
    package="unmix.papers.averaging",
    contents=CONTENTS,
    findings=FINDINGS,
    predictions=PREDICTIONS,
    contenders=CONTENDERS,
    story=STORY,
    explorer="planes:planes",
    explored=("binary", "k-class"),
)
