"""pReLU: a polynomial ReLU makes gradient flow learn subclasses instead of their averages.

`claims` what is judged, `settings` the experiments, `measures` the measurements, `figures` the
pictures, `predict` closed forms. Importing this package imports no torch.
"""

from unmix.papers.base import FigureEntry, Paper
from unmix.papers.prelu.claims import CLAIMS
from unmix.papers.prelu.findings import FINDINGS

BIBTEX = """@inproceedings{min2024implicit,
  title     = {Can Implicit Bias Imply Adversarial Robustness?},
  author    = {Min, Hancheng and Vidal, Ren{\\'e}},
  booktitle = {International Conference on Machine Learning},
  year      = {2024}
}"""

FIGURES: tuple[FigureEntry, ...] = (
    FigureEntry("7", "Alignment bias of a neuron between two centres", why_not="a drawing"),
)

PAPER = Paper(
    name="prelu",
    title="Can Implicit Bias Imply Adversarial Robustness?",
    authors="Hancheng Min, René Vidal",
    bibtex=BIBTEX,
    claims=CLAIMS,
    figures=FIGURES,
    package="unmix.papers.prelu",
    findings=FINDINGS,
)
