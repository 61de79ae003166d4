"""unmix: why gradient descent mixes features that a robust network should keep apart.

Public names are loaded when they are first used; importing unmix imports no torch.
"""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_NAMES = {
    "Experiment": "unmix.experiment",
    "Samples": "unmix.experiment",
    "Run": "unmix.experiment",
    "run": "unmix.experiment",
    "Clusters": "unmix.data.clusters",
    "SparseCode": "unmix.data.sparse_code",
    "Patches": "unmix.data.patches",
    "Images": "unmix.data.images.distribution",
    "TwoLayer": "unmix.nets.two_layer",
    "KClass": "unmix.nets.k_class",
    "FeatureAveraging": "unmix.nets.constructed",
    "FeatureDecoupling": "unmix.nets.constructed",
    "NonRobustMultiClass": "unmix.nets.constructed",
    "PReLU": "unmix.nets.prelu",
    "PReLUClasses": "unmix.nets.prelu_classes",
    "Symmetric": "unmix.nets.symmetric",
    "PatchCnn": "unmix.nets.patch_cnn",
    "GradientDescent": "unmix.train.descent",
    "NoTraining": "unmix.train.descent",
    "GradientFlow": "unmix.train.flow",
    "Adam": "unmix.train.adam",
    "NoisyDescent": "unmix.train.noisy_descent",
    "Purification": "unmix.train.purification",
    "PatchDescent": "unmix.train.patches",
    "PatchAdversarial": "unmix.train.patches",
    "Record": "unmix.train.base",
    "SuiteL2": "unmix.attacks.suite",
    "SuiteLinf": "unmix.attacks.suite",
    "SuiteL1": "unmix.attacks.suite",
    "robustness": "unmix.attacks.suite",
    "audit": "unmix.attacks.checklist",
    "certificate": "unmix.certify.base",
    "probe": "unmix.probes.base",
    "verdicts": "unmix.papers.base",
    "predict": "unmix.papers.beside",
    "Store": "unmix.store",
}
__all__ = list(_NAMES)


def __getattr__(name: str) -> Any:
    if name in _NAMES:
        return getattr(import_module(_NAMES[name]), name)
    raise AttributeError(f"module 'unmix' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_NAMES])
