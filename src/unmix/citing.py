"""What to cite: the software, the papers that a run speaks about, its images and its attacks."""

from __future__ import annotations

from unmix import __version__, catalog
from unmix.experiment import Run
from unmix.papers.base import Paper, alone
from unmix.store import Store

SOFTWARE = f"""@software{{unmix,
  title   = {{unmix: a laboratory for feature mixing in neural networks}},
  author  = {{{{The unmix authors}}}},
  version = {{{__version__}}},
  license = {{MIT}}
}}"""
TORCH = """@inproceedings{paszke2019pytorch,
  title     = {PyTorch: An Imperative Style, High-Performance Deep Learning Library},
  author    = {Paszke, Adam and Gross, Sam and Massa, Francisco and Lerer, Adam and Bradbury, James
               and others},
  booktitle = {Advances in Neural Information Processing Systems},
  volume    = {32},
  year      = {2019}
}"""
PGD = """@inproceedings{madry2018towards,
  title     = {Towards Deep Learning Models Resistant to Adversarial Attacks},
  author    = {Madry, Aleksander and Makelov, Aleksandar and Schmidt, Ludwig and Tsipras, Dimitris
               and Vladu, Adrian},
  booktitle = {International Conference on Learning Representations},
  year      = {2018}
}"""
DATASETS = {
    "mnist": """@article{lecun1998gradient,
  title   = {Gradient-based learning applied to document recognition},
  author  = {LeCun, Yann and Bottou, L{\\'e}on and Bengio, Yoshua and Haffner, Patrick},
  journal = {Proceedings of the IEEE},
  volume  = {86},
  number  = {11},
  pages   = {2278--2324},
  year    = {1998}
}""",
    "fashion-mnist": """@misc{xiao2017fashion,
  title         = {Fashion-MNIST: a Novel Image Dataset for Benchmarking Machine Learning
                   Algorithms},
  author        = {Xiao, Han and Rasul, Kashif and Vollgraf, Roland},
  year          = {2017},
  eprint        = {1708.07747},
  archiveprefix = {arXiv}
}""",
    "cifar10": """@techreport{krizhevsky2009learning,
  title       = {Learning multiple layers of features from tiny images},
  author      = {Krizhevsky, Alex},
  institution = {University of Toronto},
  year        = {2009}
}""",
    "svhn": """@inproceedings{netzer2011reading,
  title     = {Reading digits in natural images with unsupervised feature learning},
  author    = {Netzer, Yuval and Wang, Tao and Coates, Adam and Bissacco, Alessandro and Wu, Bo
               and Ng, Andrew Y.},
  booktitle = {NIPS Workshop on Deep Learning and Unsupervised Feature Learning},
  year      = {2011}
}""",
}


def of_paper(paper: Paper) -> list[str]:
    """BibTeX of the software, the paper, and the images that it trains on."""
    return [SOFTWARE, TORCH, paper.bibtex, *(DATASETS[name] for name in paper.datasets)]


def of_run(run: Run, store: Store) -> list[str]:
    """BibTeX of the software, of the papers whose setting the run is or whose claims were judged
    on it, of its images, and of gradient attacks if it was attacked."""
    judged = {verdict.claim for verdict in store.verdicts(run)}
    papers: list[Paper] = [catalog.load("papers", name) for name in catalog.names("papers")]
    known = {paper.name for paper, _ in alone(run)}
    cited = [p for p in papers if p.name in known or judged & {c.name for c in p.claims}]
    images = getattr(run.data, "dataset", "")
    attacked = run.folder is not None and any(run.folder.glob("attacked-*"))
    entries = [SOFTWARE, TORCH, *(paper.bibtex for paper in cited)]
    entries += [DATASETS[images]] if images else []
    return entries + ([PGD] if attacked else [])
