"""Targets that are differentiated by autograd: any torch module, any net without a normal form."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn

from unmix.attacks.objectives import Objective, Scores
from unmix.attacks.target import FormTarget, Head, Rows, Target, halves
from unmix.errors import AttackError
from unmix.nets.activations import Relu

# Layers whose output depends on more than the input while a module is in training mode.
MOODY = (nn.modules.batchnorm._BatchNorm, nn.modules.dropout._DropoutNd)


@dataclass(frozen=True)
class AutogradTarget(ABC):
    """Scores of points [n *shape] as a differentiable function; [n] or [n 1] means binary."""

    function: Callable[[Tensor], Tensor]
    shape: tuple[int, ...]
    dtype: torch.dtype
    device: torch.device

    def scores(self, x: Rows) -> Scores:
        with torch.no_grad():
            return self._scores(x)

    def pull(self, x: Rows, lowered: Objective) -> tuple[Scores, Tensor, Rows]:
        leaf = x.detach().requires_grad_()
        with torch.enable_grad():
            scores = self._scores(leaf)
            if not scores.requires_grad:
                came = "the scores do not depend on the input through differentiable steps"
                raise AttackError(came, "use attacks without gradients: square, directions, random")
            value, slopes = lowered(scores.detach())
            # Only with respect to the input: nobody's .grad is written.
            (gradient,) = torch.autograd.grad(scores, leaf, slopes, allow_unused=True)
        gradient = torch.zeros_like(x) if gradient is None else gradient.nan_to_num(0, 0, 0)
        return scores.detach(), value, gradient

    @abstractmethod
    def double(self) -> Target:
        """A copy in float64."""

    def _scores(self, x: Rows) -> Scores:
        came = self.function(x.reshape(-1, *self.shape).to(self.device))
        if not isinstance(came, Tensor) or came.ndim not in (1, 2) or len(came) != len(x):
            got = tuple(came.shape) if isinstance(came, Tensor) else type(came).__name__
            raise AttackError(f"expected scores [{len(x)} C] of {len(x)} points, got {got}")
        came = came.to(x.device)
        return came if came.ndim == 2 and came.shape[1] > 1 else came.reshape(-1, 1) * halves(came)


@dataclass(frozen=True)
class ReplicaTarget(AutogradTarget):
    """One replica of a trained net that gives `outputs` [1 n C] of points [1 n *shape]."""

    classifier: Any = None

    @classmethod
    def of(cls, classifier: Any, shape: tuple[int, ...]) -> ReplicaTarget:
        some = next(iter(classifier.params.values()))
        return cls(
            lambda x: classifier.outputs(x.unsqueeze(0))[0],
            shape,
            some.dtype,
            some.device,
            classifier,
        )

    def double(self) -> ReplicaTarget:
        return ReplicaTarget.of(self.classifier.double(), self.shape)


@dataclass(frozen=True)
class ModuleTarget(AutogradTarget):
    """Any torch module; its mode, gradients, device and numbers are left alone."""

    module: nn.Module | None = None

    @classmethod
    def of(cls, module: nn.Module, shape: tuple[int, ...]) -> ModuleTarget:
        moody = [type(m).__name__ for m in module.modules() if m.training and isinstance(m, MOODY)]
        if moody:
            came = f"the module is in training mode and has {moody[0]} layers"
            raise AttackError(came, "call model.eval() first: attacks never change a mode")
        floats = [t for t in _state(module) if t.is_floating_point()]
        if any(not torch.isfinite(t).all() for t in floats):
            raise AttackError("the model holds NaN or infinite weights", "train it again")
        dtype = floats[0].dtype if floats else torch.get_default_dtype()
        device = floats[0].device if floats else torch.device("cpu")
        return cls(module, shape, dtype, device, module)

    @cached_property
    def _doubled(self) -> ModuleTarget:
        assert self.module is not None
        return ModuleTarget.of(deepcopy(self.module).double(), self.shape)

    def double(self) -> ModuleTarget:
        return self._doubled


def module_target(module: nn.Module, shape: tuple[int, ...]) -> Target:
    """By hand where the module is plainly a two-layer ReLU net, by autograd otherwise.

    Searches keep their points on the CPU. A module is asked where it is; weights are copied.
    """
    layers = list(module.children()) if isinstance(module, nn.Sequential) else []
    if layers and isinstance(layers[0], nn.Flatten):
        layers = layers[1:]
    whole = ModuleTarget.of(module, shape)
    match layers:
        case [nn.Linear() as first, nn.ReLU(), nn.Linear() as last]:
            pass
        case _:
            return whole
    if any(m._forward_hooks or m._forward_pre_hooks for m in module.modules()):
        return whole
    w = first.weight.detach().cpu()
    b = w.new_zeros(len(w)) if first.bias is None else first.bias.detach().cpu()
    bias = None if last.bias is None else last.bias.detach().cpu()
    return FormTarget(w, b, Head(last.weight.detach().cpu().T, Relu(slope_at_zero=0), bias=bias))


def _state(module: nn.Module) -> list[Tensor]:
    return [*module.parameters(), *module.buffers()]
