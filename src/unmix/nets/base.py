"""Two-layer networks: the learners of the papers, and their trained models.

    z = W x + b  [M],     outputs = phi(z) A  [C],      decision f = outputs                (C = 1)
                                                        f = LSE_{J+} - LSE_{J-} of outputs  (C > 1)

The predicted label is +1 iff f > 0, so a tie is a -1 (sgn(0) = -1 in the paper). For C > 1 the sign
of f is that of the difference of softmax probabilities, which saturates and must not be attacked.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from unmix.data.base import Batch, Distribution
from unmix.data.clusters import Clusters
from unmix.nets.activations import Activation, Relu
from unmix.nets.form import Form
from unmix.nets.tops import ReluTop, Top
from unmix.spec import Spec

Params = dict[str, Tensor]


@runtime_checkable
class Classifier(Protocol):
    """Any net with parameters."""

    @property
    def params(self) -> Params:
        """One tensor a parameter; the replica axis leads."""

    def double(self) -> Classifier:
        """The same net in float64."""

    def predict(self, x: Tensor) -> Tensor:
        """Labels [R n] of points [R n *shape], as a batch's y has them."""

    def accuracy(self, batch: Batch) -> Float[Tensor, " R"]:
        """Share of points with the right label."""


class Network(Spec, ABC):
    """A family of nets that can be started, trained and asked.

    `data` is everywhere the distribution that the net is made for, of a class in `takes`.
    """

    # Distributions that the net can be made for.
    takes: ClassVar[tuple[type[Distribution], ...]] = (Distribution,)
    # Fields in which nets of one pack of replicas may differ: those that only shape the start.
    packs: ClassVar[tuple[str, ...]] = ()

    def check(self, data: Any) -> None:
        """Raise a ValueError or a SpecError where the net does not fit the data."""
        if not isinstance(data, self.takes):
            wanted = " or ".join(t.model_fields["kind"].default for t in self.takes)
            came = f"net: a {self.named!r} net takes {wanted} data, got {data.kind}"
            raise ValueError(came)

    @property
    def named(self) -> str:
        """Its name in the catalog."""
        return str(getattr(self, "kind", type(self).__name__))

    @abstractmethod
    def neurons(self, data: Any) -> int:
        """Weight vectors of one replica: what memory and time are counted by."""

    @abstractmethod
    def start(self, data: Any, seeds: Sequence[int], batch: Batch) -> Params:
        """Parameters before the first step; a net may look at the training points."""

    @abstractmethod
    def classifier(self, data: Any, params: Params) -> Classifier:
        """The net with parameters."""


class Net(Network):
    """A family of two-layer nets; a member says its width, its start and its readout."""

    takes = (Clusters,)

    def check(self, data: Any) -> None:
        super().check(data)
        self.classes(data)  # raises where labels and clusters do not fit

    @abstractmethod
    def init(self, data: Any, seeds: Sequence[int], dtype: torch.dtype) -> Params:
        """First-layer weights `w` [R M d] and, where the net has biases, `b` [R M]."""

    def start(self, data: Any, seeds: Sequence[int], batch: Batch) -> Params:
        return self.init(data, seeds, batch.x.dtype)

    def classifier(self, data: Any, params: Params) -> Model:
        return Model(self, data, params)

    @abstractmethod
    def readout(self, data: Any) -> Float[Tensor, "M C"]:
        """The frozen second layer A."""

    def activation(self) -> Activation:
        """phi."""
        return Relu(getattr(self, "slope_at_zero", 1))

    def top(self, data: Any, like: Tensor) -> Top:
        """What training sees above the pre-activations, in the dtype and place of a tensor."""
        return ReluTop(self.readout(data).to(like), getattr(self, "slope_at_zero", 1))

    def form(self, data: Any, params: Params) -> Form:
        """The net in its normal form; a net with other parameters than w and b says its own."""
        w = params["w"]
        b = params["b"] if "b" in params else w.new_zeros(w.shape[:2])
        readout = self.readout(data).to(w).expand(len(w), -1, -1)
        return Form(w, b, readout, self.activation(), self.output_signs(data, w))

    def output_signs(self, data: Any, like: Tensor) -> Float[Tensor, " C"] | None:
        """Label of each output, for nets with more than one."""
        classes = self.classes(data)
        if classes is None:
            return None
        signs = torch.zeros(int(classes.max()) + 1, dtype=like.dtype)
        signs[classes] = data.signs.to(like.dtype)
        return signs.to(like.device)

    def classes(self, data: Any) -> Int[Tensor, " k"] | None:
        """Output that stands for each cluster, or None for a one-output (binary) net."""
        return None

    def targets(self, data: Any, batch: Batch) -> Tensor:
        """What the loss compares the outputs with: labels y, or class indices."""
        classes = self.classes(data)
        return batch.y if classes is None else classes.to(batch.cluster.device)[batch.cluster]


@dataclass(frozen=True)
class Model:
    """A net with parameters: what attacks, probes and certificates look at."""

    net: Net
    data: Any
    params: Params

    @property
    def w(self) -> Float[Tensor, "R M d"]:
        return self.params["w"]

    @cached_property
    def b(self) -> Float[Tensor, "R M"]:
        return self.params["b"] if "b" in self.params else self.w.new_zeros(self.w.shape[:2])

    @cached_property
    def readout(self) -> Float[Tensor, "M C"]:
        """The second layer that all replicas share; a trained one is in `form`."""
        return self.net.readout(self.data).to(self.w)

    @cached_property
    def class_signs(self) -> Float[Tensor, " C"] | None:
        """Label of each output, for nets with more than one."""
        return self.net.output_signs(self.data, self.w)

    @cached_property
    def form(self) -> Form:
        """The same net as attacks and certificates see it."""
        return self.net.form(self.data, self.params)

    @cached_property
    def neuron_signs(self) -> Float[Tensor, " M"]:
        """Label that each neuron votes for, where all replicas share the second layer."""
        signs = self.class_signs
        return (self.readout.sum(1) if signs is None else self.readout @ signs).sign()

    def double(self) -> Model:
        return Model(self.net, self.data, {k: v.double() for k, v in self.params.items()})

    def preactivations(self, x: Float[Tensor, "R n d"]) -> Float[Tensor, "R n M"]:
        return self.form.preactivations(x)

    def outputs(self, x: Float[Tensor, "R n d"]) -> Float[Tensor, "R n C"]:
        return self.form.outputs(self.preactivations(x))

    def decision(self, x: Float[Tensor, "R n d"]) -> Float[Tensor, "R n"]:
        """f(x), in log form for softmax nets."""
        return self.decide(self.preactivations(x))

    def decide(self, z: Float[Tensor, "*p M"]) -> Float[Tensor, "*p"]:
        """f as a function of the pre-activations."""
        return self.form.decide(z)

    def slope(self, z: Float[Tensor, "*p M"]) -> Float[Tensor, "*p M"]:
        """df/dz, by hand."""
        return self.form.slope(z)

    @property
    def lipschitz(self) -> Float[Tensor, " R"]:
        """Bounds |f(x) - f(x')| / |x - x'|; infinity where f has only local bounds."""
        return self.form.lipschitz

    def predict(self, x: Float[Tensor, "R n d"]) -> Float[Tensor, "R n"]:
        return sign(self.decision(x))

    def accuracy(self, batch: Batch) -> Float[Tensor, " R"]:
        return (self.predict(batch.x) == batch.y).double().mean(1)


def sign(f: Float[Tensor, "*p"]) -> Float[Tensor, "*p"]:
    """sgn with the paper's convention sgn(0) = -1."""
    return torch.where(f > 0, torch.ones_like(f), -torch.ones_like(f))
