"""Adam on fresh points for the learners of low complexity, cleanly or against an attack."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import torch
from jaxtyping import Float
from pydantic import Field
from torch import Tensor

from unmix.data.sparse_code import SparseCode
from unmix.nets.base import Params
from unmix.nets.contrast import Contrast, ContrastModel
from unmix.perturbations.base import Scene
from unmix.perturbations.gradient import FGM
from unmix.spec import AnySpec, Kind
from unmix.train.base import Checkpoint, Hooks, Start, Stop, Trace, Training
from unmix.train.losses import losses

BETA1, BETA2, EPS = 0.9, 0.999, 1e-8
COLUMNS = ("loss", "accuracy")


class ContrastDescent(Training):
    """`steps` steps of Adam on the mean logistic loss; with tau > 0 on points moved by `attack`."""

    kind: Literal["contrast-descent"] = "contrast-descent"
    eta: float = Field(0.02, gt=0, description="step size of Adam")
    steps: int = Field(300, ge=0)
    batch: int = Field(300, ge=1, description="fresh points a step")
    attack: Annotated[AnySpec, Kind("perturbations")] = FGM()
    tau: float = Field(0.0, ge=0, description="radius of the attack; 0 is clean training")

    trains = (Contrast,)

    def length(self) -> int:
        return self.steps

    def cost(self, net: Contrast, data: SparseCode, points: int) -> int:
        passes = 6 if self.tau else 4
        return passes * self.steps * self.batch * data.d * net.neurons(data)

    def threads(self, net: Any, data: Any, points: int, pack: int, dtype: str) -> int:
        """Products are small."""
        return 1

    def begin(self, start: Start) -> ContrastWalk:
        return ContrastWalk(start)


class ContrastWalk:
    """All replicas, step by step."""

    def __init__(self, start: Start) -> None:
        self.train, self.net = start.training(ContrastDescent), start.net
        self.data, self.seeds = start.data, tuple(start.seeds)
        self.params: Params = dict(start.params)
        self.first = {name: torch.zeros_like(start.params[name]) for name in self.net.learned}
        self.second = {name: torch.zeros_like(value) for name, value in self.first.items()}
        like = start.batch.x
        self.like, self.ahead = like, self.data.ahead(self.seeds).to(like)
        self.recorded = self.train.record.steps(self.train.steps)
        self.step, self.rows = 0, list[Tensor]()

    def run(self, hooks: Hooks) -> tuple[Params, Trace]:
        """Train to the end; `hooks` may save checkpoints on the way."""
        recorded = set(self.recorded)
        while True:
            if self.step in recorded and len(self.rows) < self._due():
                self.rows.append(self._row())
            hooks.progress(self.step)
            if self.step == self.train.steps:
                break
            if hooks.wants_checkpoint():
                hooks.checkpoint(self._checkpoint())
            self._advance()
        table = torch.stack(self.rows, 1)
        columns = {name: table[..., i] for i, name in enumerate(COLUMNS)}
        stops = (Stop("steps", self.train.steps),) * len(self.seeds)
        return self.params, Trace(self.recorded, columns, stops)

    def resume(self, state: Checkpoint) -> None:
        """Go on from a checkpoint of the same training."""
        parts: dict[str, Params] = {"params": {}, "first": {}, "second": {}, "rows": {}}
        for name, value in state.tensors.items():
            part, _, key = name.partition(".")
            parts[part][key] = value
        self.params, self.first, self.second = parts["params"], parts["first"], parts["second"]
        self.step, self.rows = state.step, list(parts["rows"]["all"])

    def _advance(self) -> None:
        x, y = self._draw(self.train.batch, f"train.step.{self.step}")
        if self.train.tau:
            model = ContrastModel(self.net, self.params)
            scene = Scene(model, self.ahead, None, self.seeds, f"train.attack.{self.step}")
            x = x + self.train.attack.perturb(scene, x, y, self.train.tau)
        self.step += 1
        for name, g in self._gradient(x, y).items():
            first = self.first[name].mul_(BETA1).add_(g, alpha=1 - BETA1)
            second = self.second[name].mul_(BETA2).addcmul_(g, g, value=1 - BETA2)
            size = (second / (1 - BETA2**self.step)).sqrt_().add_(EPS)
            rate = self.train.eta / (1 - BETA1**self.step)
            self.params[name] = self.params[name] - rate * first / size

    def _gradient(self, x: Float[Tensor, "R n d"], y: Float[Tensor, "R n"]) -> Params:
        names = self.net.learned
        moving = {name: self.params[name].detach().requires_grad_() for name in names}
        with torch.enable_grad():
            p = self.net.value(self.params | moving, x)
            loss = losses(p.unsqueeze(-1), y).mean(1).sum()
            found = torch.autograd.grad(loss, list(moving.values()))
        return dict(zip(names, found, strict=True))

    def _row(self) -> Float[Tensor, "R 2"]:
        x, y = self._draw(1000, "train.watch")
        q = y * self.net.value(self.params, x)
        loss = losses(q.unsqueeze(-1), torch.ones_like(q)).mean(1)
        return torch.stack([loss.double(), (q > 0).double().mean(1)], 1)

    def _draw(self, n: int, purpose: str) -> tuple[Tensor, Tensor]:
        batch = self.data.sample(self.seeds, n, purpose, self.like.dtype)
        return batch.x.to(self.like.device), batch.y.to(self.like.device)

    def _due(self) -> int:
        """Rows that there are once this step has been looked at."""
        return sum(step <= self.step for step in self.recorded)

    def _checkpoint(self) -> Checkpoint:
        groups = {"params": self.params, "first": self.first, "second": self.second}
        tensors = {f"{g}.{n}": t.clone() for g, group in groups.items() for n, t in group.items()}
        tensors["rows.all"] = torch.stack(self.rows)
        return Checkpoint(self.step, tensors, [None] * len(self.seeds))
