"""The table of contents: every name that a user may write, and where it lives.

A member is one file and one line here. Nothing is imported until it is asked for, so reading the
catalog costs no torch.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any

from unmix.errors import UnknownName, nearest


@dataclass(frozen=True)
class Entry:
    """Where a name lives ("module:attribute") and one line on what it is."""

    target: str
    summary: str

    def load(self) -> Any:
        module, attribute = self.target.split(":")
        return getattr(import_module(module), attribute)


CATALOG: dict[str, dict[str, Entry]] = {
    "papers": {
        "averaging": Entry(
            "unmix.papers.averaging:PAPER",
            "Feature Averaging (Li, Pan, Lyu, Li): GD learns the average of a label's clusters",
        ),
        "prelu": Entry(
            "unmix.papers.prelu:PAPER",
            "pReLU (Min, Vidal): a power of the ReLU learns subclasses instead of their average",
        ),
        "patches": Entry(
            "unmix.papers.patches:PAPER",
            "Adversarial training and robust features (Li, Li): patch CNNs, two phases",
        ),
        "purification": Entry(
            "unmix.papers.purification:PAPER",
            "Feature Purification (Allen-Zhu, Li): adversarial training removes dense mixtures",
        ),
    },
    "data": {
        "clusters": Entry(
            "unmix.data.clusters:Clusters",
            "k Gaussian clusters around (nearly) orthogonal centres, two labels",
        ),
        "images": Entry(
            "unmix.data.images.distribution:Images",
            "MNIST, Fashion-MNIST, CIFAR-10 or SVHN by class, parity or random groups of classes",
        ),
        "patches": Entry(
            "unmix.data.patches:Patches",
            "points of P patches, each with a robust or a non-robust feature of its class",
        ),
        "sparse-code": Entry(
            "unmix.data.sparse_code:SparseCode",
            "x = M z + xi with a sparse code z, label sign(<w*, z>) (purification, Assumption 2.1)",
        ),
        "features": Entry(
            "unmix.data.images.features:Features",
            "the same images as a pre-trained network sees them (extra: images)",
        ),
    },
    "nets": {
        "two-layer": Entry(
            "unmix.nets.two_layer:TwoLayer",
            "binary ReLU net, second layer frozen at +-1/m, first layer and biases trained",
        ),
        "k-class": Entry(
            "unmix.nets.k_class:KClass",
            "h ReLU neurons a class, softmax; its probabilities' difference is the binary label",
        ),
        "feature-averaging": Entry(
            "unmix.nets.constructed:FeatureAveraging",
            "f_FA: one neuron a label, along the sum of the label's centres (Def 4.1, D.1)",
        ),
        "feature-decoupling": Entry(
            "unmix.nets.constructed:FeatureDecoupling",
            "f_FD: one neuron a cluster with a threshold -beta d (Thm D.3)",
        ),
        "non-robust-multi-class": Entry(
            "unmix.nets.constructed:NonRobustMultiClass",
            "the accurate, averaging k-class net of Prop 4.8",
        ),
        "prelu": Entry(
            "unmix.nets.prelu:PReLU", "pReLU net: v relu(<x, w>)^p/|w|^(p-1), both layers trained"
        ),
        "symmetric": Entry(
            "unmix.nets.symmetric:Symmetric",
            "neurons in pairs +-w under one growing threshold, noise averaged out (purification)",
        ),
        "code-linear": Entry(
            "unmix.nets.contrast:CodeLinear", "linear learner on a sparse code (purification, 3)"
        ),
        "code-polynomial": Entry(
            "unmix.nets.contrast:CodePolynomial",
            "odd polynomial of degree 3 on a sparse code (purification, Cor 5.7)",
        ),
        "code-tangent": Entry(
            "unmix.nets.contrast:CodeTangent",
            "tangent kernel of the symmetric net, with both signs (purification, Def 5.5)",
        ),
        "prelu-averaging": Entry(
            "unmix.nets.prelu_constructed:PReLUAveraging",
            "F: a ReLU net along the mean centre of each label (pReLU, section 3)",
        ),
        "prelu-subclasses": Entry(
            "unmix.nets.prelu_constructed:PReLUSubclasses",
            "F^(p): a pReLU net along the centre of each subclass (pReLU, section 3)",
        ),
        "prelu-classes": Entry(
            "unmix.nets.prelu_classes:PReLUClasses",
            "pReLU net with one output a class, on images that it centres (pReLU, section 5.2)",
        ),
        "resnet": Entry(
            "unmix.nets.deep:ResNet",
            "residual net on images: ResNet18 and smaller ones (patches, section 6.2)",
        ),
        "wide-resnet": Entry(
            "unmix.nets.deep:WideResNet",
            "wide residual net on images: WideResNet-34-10 (patches, section 6.2)",
        ),
        "patch-cnn": Entry(
            "unmix.nets.patch_cnn:PatchCnn", "m smoothed-ReLU filters a class, summed over patches"
        ),
        "patch-non-robust": Entry(
            "unmix.nets.patch_cnn:NonRobustMinimum",
            "one filter gamma v_i a class, a non-robust global minimum (patches, Prop 3.1)",
        ),
        "patch-robust": Entry(
            "unmix.nets.patch_cnn:RobustMinimum",
            "one filter gamma u_i a class, a robust global minimum (patches, Prop 3.2)",
        ),
    },
    "perturbations": {
        "fgm": Entry(
            "unmix.perturbations.gradient:FGM", "fast gradient method, with the paper's zero rule"
        ),
        "projected-steps": Entry(
            "unmix.perturbations.gradient:ProjectedSteps", "several gradient steps, projected"
        ),
        "universal": Entry(
            "unmix.perturbations.fixed:Universal",
            "-tau y M w*: the same for every net (purification, Thm 5.1c)",
        ),
        "noise": Entry("unmix.perturbations.fixed:Noise", "a random direction: the control"),
        "attack": Entry(
            "unmix.perturbations.attack:AttackStep", "any attack of the house, where it fools"
        ),
    },
    "train": {
        "gradient-descent": Entry(
            "unmix.train.descent:GradientDescent", "full-batch gradient descent"
        ),
        "flow": Entry(
            "unmix.train.flow:GradientFlow", "gradient flow of a pReLU net, adaptive steps"
        ),
        "reduced-flow": Entry(
            "unmix.train.reduced_flow:ReducedFlow",
            "approximation of the flow in the span of the centres, noise averaged out",
        ),
        "adam": Entry(
            "unmix.train.adam:Adam", "Adam by mini-batches and epochs, for pReLU nets on images"
        ),
        "noisy-descent": Entry(
            "unmix.train.noisy_descent:NoisyDescent",
            "Algorithm 1: a symmetric net under a growing threshold (purification)",
        ),
        "purification": Entry(
            "unmix.train.purification:Purification",
            "Algorithm 2: Algorithm 1, then steps on points that an attack has moved",
        ),
        "contrast-descent": Entry(
            "unmix.train.contrast:ContrastDescent",
            "Adam for learners of low complexity, cleanly or against an attack (purification)",
        ),
        "none": Entry("unmix.train.descent:NoTraining", "keep the initial (constructed) weights"),
        "patch-descent": Entry(
            "unmix.train.patches:PatchDescent", "full-batch gradient descent of a patch CNN"
        ),
        "patch-adversarial": Entry(
            "unmix.train.patches:PatchAdversarial",
            "the same on points that are attacked before each step (patches, section 2.5)",
        ),
        "deep-descent": Entry(
            "unmix.train.deep:DeepDescent", "SGD with momentum for deep nets on images"
        ),
        "deep-adversarial": Entry(
            "unmix.train.deep:DeepAdversarial",
            "the same on images that PGD attacks before each step (patches, section 6.2)",
        ),
        "patch-recursion": Entry(
            "unmix.train.patch_recursion:PatchRecursion",
            "approximation of both by the recursion of A and B alone (patches, Lemmas 5.1, 5.2)",
        ),
    },
    "probes": {
        "cosines": Entry(
            "unmix.probes.alignment:cosines", "cosines between neurons and centres (Fig 2)"
        ),
        "margins": Entry(
            "unmix.probes.margins:margins", "margin gaps and loss-derivative ratios (Lemma 5.3)"
        ),
        "activation": Entry(
            "unmix.probes.activation:activation", "activation sets and dead neurons (Lemma 5.5)"
        ),
        "decomposition": Entry(
            "unmix.probes.decomposition:decomposition",
            "w = w0 + lambda mu/|mu|^2 + sigma xi/|xi|^2 (Lemmas 5.1, 5.2)",
        ),
        "weight-error": Entry(
            "unmix.probes.weight_error:weight_error",
            "sqrt(d) |w - lambda sum mu/|mu|^2| and its four pieces (Lemma B.25)",
        ),
        "inner-products": Entry(
            "unmix.probes.inner_products:inner_products",
            "how well lambda, sigma stand for <w, mu>, <w, xi> and margins (B.11 to B.14, B.26)",
        ),
        "averaging-distance": Entry(
            "unmix.probes.averaging_distance:averaging_distance",
            "sup over the sphere of |C f_FA - f| (Thm 4.6)",
        ),
        "contributions": Entry(
            "unmix.probes.contributions:contributions",
            "v |w| of each neuron, dominant ones, subclasses covered (pReLU, Fig 2)",
        ),
        "mixtures": Entry(
            "unmix.probes.mixtures:mixtures",
            "how many features a neuron mixes, and how near its closest one is",
        ),
        "dense-mixture": Entry(
            "unmix.probes.dense_mixture:dense_mixture",
            "pure features and dense mixture of each neuron (purification, Thms 5.1a, 5.2)",
        ),
        "tickets": Entry(
            "unmix.probes.tickets:tickets", "lottery tickets and who keeps them (B.2, C.1, C.2)"
        ),
        "growth": Entry(
            "unmix.probes.growth:growth", "the race of features in a neuron (C.8, C.10, C.18, C.22)"
        ),
        "coupling": Entry(
            "unmix.probes.coupling:coupling",
            "linear functions that stand for the net (purification, D.6, F.11, F.12)",
        ),
        "purified": Entry(
            "unmix.probes.purified:purified",
            "what adversarial training changed in each neuron (purification, Thm 5.3c)",
        ),
        "density": Entry(
            "unmix.probes.density:density",
            "density of the perturbations that fool a net (purification, Fig 7)",
        ),
        "sparsity": Entry(
            "unmix.probes.sparsity:sparsity",
            "Lasso reconstruction with random, clean and robust features (purification, Fig 12)",
        ),
        "reference-distance": Entry(
            "unmix.probes.reference_distance:reference_distance",
            "sup over the sphere of |c f - F| or |c f - F^(p)| (pReLU, Algorithm 1)",
        ),
        "alignment-field": Entry(
            "unmix.probes.alignment_field:alignment_field",
            "x^(p)(w), which turns neurons while outputs are small (pReLU, Lemma 1)",
        ),
        "invariants": Entry(
            "unmix.probes.invariants:invariants",
            "drift of v^2 - |w|^2, degree in the parameters, flipped signs (pReLU, section 2)",
        ),
        "phases": Entry(
            "unmix.probes.phases:phases", "ends of the alignment and the fitting phase"
        ),
        "spectrum": Entry(
            "unmix.probes.spectrum:spectrum", "stable ranks of hidden features and weights"
        ),
        "classes": Entry(
            "unmix.probes.classes:classes",
            "accuracy by class, stable rank, silent and aligned neurons of a net on images",
        ),
        "assumptions": Entry(
            "unmix.probes.assumptions:assumptions",
            "which conditions of the theorems a run meets, and by what factor",
        ),
        "patch-features": Entry(
            "unmix.probes.patch_features:patch_features",
            "feature-learning accuracies and graded shares (patches, Def 4.1)",
        ),
        "patch-weights": Entry(
            "unmix.probes.patch_weights:patch_weights",
            "coefficients A, B, C, D, what lies outside the features, noise (patches, Lemma D.2)",
        ),
        "patch-phases": Entry(
            "unmix.probes.patch_phases:patch_phases",
            "when B saturates, A takes off and overtakes B; label leakage (patches, section 5.2)",
        ),
        "patch-recursions": Entry(
            "unmix.probes.patch_recursions:patch_recursions",
            "how far a training ends from its recursion (patches, Lemmas D.4, D.22)",
        ),
    },
    "attacks": {
        "average-direction": Entry(
            "unmix.attacks.directions:AverageDirection",
            "along -y (sum of positive centres - sum of negative centres), Remark 4.2",
        ),
        "nearest-opposite": Entry(
            "unmix.attacks.directions:NearestOpposite",
            "towards each centre of the other label (the decoupling direction)",
        ),
        "label-direction": Entry(
            "unmix.attacks.directions:LabelDirection",
            "-y M w*, the universal perturbation of sparse codes (purification, Thm E.1)",
        ),
        "other-means": Entry(
            "unmix.attacks.directions:OtherMeans",
            "towards the mean of the points of each other label",
        ),
        "min-norm": Entry(
            "unmix.attacks.minimum:MinimumNorm",
            "boundary crossings shortened by linearised projections: the whole curve in one run",
        ),
        "fgm": Entry("unmix.attacks.gradient:FGM", "one steepest step (FGM, FGSM), zero rule"),
        "pgd": Entry(
            "unmix.attacks.gradient:PGD",
            "projected gradient steps on the margin from closed forms and random points",
        ),
        "pgd-targeted": Entry(
            "unmix.attacks.gradient:TargetedPGD", "the same towards each other label in turn"
        ),
        "square": Entry(
            "unmix.attacks.blackbox:Square", "random blocks of coordinates, no gradient at all"
        ),
        "apgd": Entry("unmix.attacks.gradient:APGD", "the same with momentum and adapted steps"),
        "random": Entry(
            "unmix.attacks.directions:RandomDirections", "random directions: the control"
        ),
        "transfer": Entry(
            "unmix.attacks.transfer:Transfer", "what fools another run's net at the same points"
        ),
        "suite-code": Entry(
            "unmix.attacks.coded:CodeSuite",
            "union of attacks on a symmetric net, after or before its adversarial training",
        ),
        "suite-l2": Entry("unmix.attacks.suite:SuiteL2", "union of all l2 attacks, point by point"),
        "suite-linf": Entry(
            "unmix.attacks.suite:SuiteLinf", "union of all l_inf attacks, point by point"
        ),
        "suite-l1": Entry("unmix.attacks.suite:SuiteL1", "union of all l1 attacks, point by point"),
        "suite-of-one": Entry(
            "unmix.attacks.one:SuiteOfOne", "one attack alone, in any norm, for thousands of images"
        ),
        "model-free": Entry(
            "unmix.attacks.patches:ModelFree",
            "patches: exchange the non-robust features, without knowing the net (Thm 4.3)",
        ),
        "own-features": Entry(
            "unmix.attacks.patches:OwnFeatures", "patches: weaken both features of the own class"
        ),
        "in-place": Entry(
            "unmix.attacks.patches:InPlace", "patches: exchange each patch's feature for a rival's"
        ),
        "all-features": Entry(
            "unmix.attacks.patches:AllFeatures",
            "patches: weaken the own features and put a rival's on every patch",
        ),
        "patch-ascent": Entry(
            "unmix.attacks.patches:PatchAscent", "patches: gradient steps as published, one start"
        ),
        "patch-strong": Entry(
            "unmix.attacks.patches:Strong",
            "patches: margin ascent from four starts, every iterate judged",
        ),
        "patch-suite": Entry(
            "unmix.attacks.patch_suite:PatchSuite", "patches: the battery of all of these, in l_inf"
        ),
    },
    "certify": {
        "exact-l2": Entry(
            "unmix.certify.exact:ExactL2",
            "exact l2 radii: branch and bound over the neurons that vote against the label",
        ),
        "exact-linf": Entry(
            "unmix.certify.exact:ExactLinf",
            "exact l_inf radii: the same search, its nodes bounded by a simplex method",
        ),
        "closed-form": Entry(
            "unmix.certify.closed:ClosedForm",
            "exact l2 radii of two ReLUs (f_FA, F), and powers (F^(p)) by the norms that they are",
        ),
        "merged-l2": Entry(
            "unmix.certify.merged:MergedL2",
            "wide nets: near neurons as their mean, quiet ones dropped, less the certified error",
        ),
        "root": Entry(
            "unmix.certify.bounds:Root",
            "its convex relaxation at the self-consistent radius (rounds=0: CROWN-type)",
        ),
        "interval": Entry(
            "unmix.certify.bounds:Interval", "every pre-activation as bad as the ball allows (IBP)"
        ),
        "lipschitz": Entry(
            "unmix.certify.bounds:Lipschitz", "margin over the net's Lipschitz constant"
        ),
        "pairwise-lipschitz": Entry(
            "unmix.certify.softmax:PairwiseLipschitz",
            "softmax nets: margin over the steepest difference of two outputs",
        ),
        "softmax-exact": Entry(
            "unmix.certify.softmax_exact:SoftmaxExact",
            "softmax nets: exact l2 radii by branch and bound over the other side's outputs",
        ),
        "softmax-dual": Entry(
            "unmix.certify.softmax:SoftmaxDual",
            "softmax nets: a tangent below one side, the largest output above the other",
        ),
        "subsets": Entry(
            "unmix.certify.subsets:Subsets",
            "exact l2 radii of ReLU nets over subsets of opposing neurons: an oracle",
        ),
        "brute-force": Entry(
            "unmix.certify.brute:BruteForce",
            "exact radii over all activation patterns of a few neurons: an oracle",
        ),
    },
}


def names(family: str) -> list[str]:
    """Names of a family, in the order of the catalog."""
    return list(_family(family))


def find(family: str, name: str) -> Entry:
    """The entry of a name; an unknown one is an error that names the nearest."""
    members = _family(family)
    if not isinstance(name, str) or name not in members:
        raise UnknownName(f"there is no {family} entry {name!r}", nearest(name, members))
    return members[name]


def load(family: str, name: str) -> Any:
    """Import and return the member behind a name."""
    return find(family, name).load()


def _family(family: str) -> dict[str, Entry]:
    if family not in CATALOG:
        raise UnknownName(f"there is no family {family!r}", nearest(family, CATALOG))
    return CATALOG[family]
