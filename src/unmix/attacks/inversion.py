"""Images that a representation cannot tell from others (patches paper, section 6.2; Ilyas et al.).

    x^ = argmin_{x^ in [0,1]^d} |G(x^) - G(x)|_2

With G of a standardly trained net the x^, under the labels of the x, are the data set D_NR of
non-robust features; with G of an adversarially trained one D_R of robust ones. The text leaves the
search open, and what comes out depends on it: where it starts, its steps and their number are
fields. "gradient" is that of Ilyas et al. (normalised steps from another image), "adam" a faster
one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float, Int
from pydantic import Field
from torch import Tensor

from unmix.attacks.threat import Threat
from unmix.errors import AttackError
from unmix.spec import Spec
from unmix.streams import stream

Encoder = Callable[[Tensor], Tensor]
Rows = Float[Tensor, "n d"]
# Of Adam's first and second moments.
BETAS, EPS = (0.9, 0.999), 1e-8


@dataclass(frozen=True)
class Inverted:
    """Images [n *shape], and |G(x^) - G(x)| [n] at the end and at the start."""

    x: Tensor
    left: Float[Tensor, " n"]
    began: Float[Tensor, " n"]


class Inversion(Spec):
    """`steps` steps in the box; the image whose representation is nearest is kept."""

    method: Literal["gradient", "adam"] = Field(
        "gradient", description="steps of l2 length `size` down the gradient, or Adam's"
    )
    steps: int = Field(200, ge=0)
    size: float = Field(0.1, gt=0)
    start: Literal["other", "noise", "grey"] = Field(
        "other", description="an image of another class, uniform noise, or all pixels 1/2"
    )
    box: tuple[float, float] = (0.0, 1.0)

    def starts(self, x: Tensor, y: Int[Tensor, " n"], seed: int) -> Tensor:
        """Where the search begins, for points with labels."""
        low, high = self.box
        if self.start == "grey":
            return torch.full_like(x, (low + high) / 2)
        draw = stream(seed, f"inversion.{self.start}")
        if self.start == "noise":
            return torch.from_numpy(draw.uniform(low, high, x.shape)).to(x)
        if bool((y == y[0]).all()):
            came = f"all {len(y)} points have label {int(y[0])}: none can start at another class"
            raise AttackError(came, "take more points, or start at noise")
        order = torch.from_numpy(draw.permutation(len(y))).to(y.device)
        # The first point of another class in an order that begins elsewhere for each point.
        shifts = torch.stack([order.roll(-i) for i in range(len(y))])
        first = (y[shifts] != y.unsqueeze(1)).float().argmax(1)
        return x[shifts.gather(1, first.unsqueeze(1)).squeeze(1)]

    def __call__(self, encoder: Encoder, x: Tensor, start: Tensor) -> Inverted:
        """The image of each point."""
        return self.path(encoder, x, start, (self.steps,))[self.steps]

    def path(
        self, encoder: Encoder, x: Tensor, start: Tensor, at: Sequence[int]
    ) -> dict[int, Inverted]:
        """What there is after each of several numbers of steps."""
        if x.shape != start.shape:
            came = f"{tuple(x.shape)} and {tuple(start.shape)}"
            raise AttackError(f"expected a start for each point, got {came}")
        threat = Threat(box=self.box)
        threat.check(x.flatten(1))
        threat.check(start.flatten(1))
        search = _Search(self, encoder, x, start)
        found = {}
        for step in range(max(at) + 1):
            slope = search.look()
            if step in at:
                found[step] = search.found()
            search.move(slope, step + 1)
        return found


class _Search:
    """One search under way."""

    def __init__(self, asked: Inversion, encoder: Encoder, x: Tensor, start: Tensor) -> None:
        self.asked, self.encoder, self.shape = asked, encoder, x.shape
        with torch.no_grad():
            self.wanted = encoder(x).flatten(1)
        self.now = start.detach().flatten(1).clone()
        self.best, self.began = self.now.clone(), torch.empty(0)
        self.lowest = torch.full_like(self.now[:, 0], torch.inf)
        self.first, self.second = torch.zeros_like(self.now), torch.zeros_like(self.now)

    def look(self) -> Rows:
        """Keep what is nearer than all before; the gradient of the distance."""
        leaf = self.now.detach().requires_grad_()
        with torch.enable_grad():
            distance = (self.encoder(leaf.reshape(self.shape)).flatten(1) - self.wanted).norm(dim=1)
            if not distance.requires_grad:
                raise AttackError("the encoder is not differentiable in its input")
            (slope,) = torch.autograd.grad(distance.sum(), leaf)
        distance = distance.detach()
        self.began = distance if not len(self.began) else self.began
        nearer = distance < self.lowest
        self.best = torch.where(nearer.unsqueeze(1), self.now, self.best)
        self.lowest = torch.where(nearer, distance, self.lowest)
        return slope.nan_to_num(0, 0, 0)

    def move(self, slope: Rows, turn: int) -> None:
        """One step into the box."""
        size = self.asked.size
        if self.asked.method == "gradient":
            step = size * Threat().steepest(slope)
        else:
            self.first.lerp_(slope, 1 - BETAS[0])
            self.second.lerp_(slope.square(), 1 - BETAS[1])
            mean, square = (
                m / (1 - beta**turn)
                for m, beta in zip((self.first, self.second), BETAS, strict=True)
            )
            step = size * mean / (square.sqrt() + EPS)
        self.now = (self.now - step).clamp(*self.asked.box)

    def found(self) -> Inverted:
        return Inverted(self.best.reshape(self.shape), self.lowest, self.began)
