"""Projected gradient descent on the log-form margin, in coordinates of the neurons' span.

A start at the clean point misleads on these nets: the neurons that vote against the label are off
there and give no gradient, so the attack only switches the own neurons off and lands in the flat
zone f = 0, which counts as correct for y = -1. Random starts inside span(W) see both sides (in R^d
their component in the span is sqrt(r/d) of their length, and they help little).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import torch
from jaxtyping import Bool, Float
from pydantic import Field
from torch import Tensor
from torch.nn.functional import normalize

from unmix.attacks.base import Attack, Found, View
from unmix.streams import normals

# After the radii: shrink each point's own best radius by these shares, from a few starts around
# the best perturbation so far, as long as that succeeds.
SHRINK = (0.03, 0.01, 0.004, 0.001, 0.0004)
AGAIN, NEARBY = 3, 4


class PGD(Attack):
    """`restarts` random starts in the span, then refinement; or one start at the clean point."""

    kind: Literal["pgd"] = "pgd"
    steps: int = Field(40, ge=1)
    restarts: int = Field(20, ge=1)
    start: Literal["span", "clean"] = "span"

    @property
    def name(self) -> str:
        return self.kind if self.start == "span" else "pgd-clean-start"

    def search(self, view: View, radii: Sequence[float]) -> Found:
        best = torch.full_like(view.y, torch.inf)
        v = torch.zeros(len(best), view.basis.shape[2], dtype=best.dtype)
        # Below margin / Lipschitz no perturbation can succeed: not worth an attempt.
        safe = view.model.decide(view.z0).abs() / view.model.lipschitz[view.replica]
        for index, eps in enumerate(r for r in radii if r > 0):
            starts = self._starts(view, index, v) * eps
            todo = best.isinf() & (safe <= eps)
            best, v = self._improve(view, todo, torch.full_like(best, eps), starts, best, v)
        if self.start == "span":
            best, v = self._refine(view, best, v)
        delta = torch.einsum("pdr,pr->pd", view.basis[view.replica], v)
        return Found(best.reshape(view.shape), delta.reshape(*view.shape, -1))

    def _refine(self, view: View, best: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        for index, share in enumerate(SHRINK):
            for again in range(AGAIN):
                before = best.clone()
                eps = torch.where(best.isfinite(), best * (1 - share), 0.0)
                noise = self._starts(view, 1000 + 10 * index + again, v)[:, :NEARBY]
                starts = (
                    normalize(normalize(v, dim=-1).unsqueeze(1) + noise, dim=-1)
                    * eps[:, None, None]
                )
                best, v = self._improve(view, best.isfinite() & (best > 0), eps, starts, best, v)
                if not (best < before).any():
                    break
        return best, v

    def _improve(
        self,
        view: View,
        todo: Bool[Tensor, " P"],
        eps: Tensor,
        starts: Tensor,
        best: Tensor,
        v: Tensor,
    ) -> tuple[Tensor, Tensor]:
        """Attack the `todo` points at their own radius; shorten what succeeds along its ray."""
        if not todo.any():
            return best, v
        some = replace(view, z0=view.z0[todo], y=view.y[todo], replica=view.replica[todo])
        hit, where = self._descend(some, eps[todo], starts[todo])
        inside = some.inside[some.replica]
        unit = normalize(where, dim=-1)
        t = some.ray(torch.einsum("pmr,pr->pm", inside, unit), float(eps.max()) * (1 + 1e-9))
        better = hit & (t < best[todo])
        best, v = best.clone(), v.clone()
        best[todo] = torch.where(better, t, best[todo])
        v[todo] = torch.where(better[:, None], unit * t.nan_to_num(posinf=0.0)[:, None], v[todo])
        return best, v

    def _descend(
        self, view: View, eps: Float[Tensor, " P"], v: Float[Tensor, "P S r"]
    ) -> tuple[Bool[Tensor, " P"], Float[Tensor, "P r"]]:
        """PGD from all starts of each point; whether one succeeded, and a success."""
        inside, z0, y = view.inside[view.replica], view.z0.unsqueeze(1), view.y.unsqueeze(1)
        hit = torch.zeros_like(view.y, dtype=torch.bool)
        where = v[:, 0].clone()
        ball = eps[:, None, None]
        for step in range(self.steps + 1):
            z = z0 + v @ inside.transpose(1, 2)
            wrong = view.wrong(z, y)
            new = wrong.any(1) & ~hit
            first = wrong.double().argmax(1)
            where = torch.where(new[:, None], v[torch.arange(len(v)), first], where)
            hit = hit | new
            if step == self.steps or hit.all():
                break
            slope = (y.unsqueeze(-1) * view.model.slope(z)) @ inside
            v = v - (2.5 / self.steps) * ball * normalize(slope, dim=-1)
            v = v * (ball / v.norm(dim=-1, keepdim=True).clamp_min(1e-300)).clamp_max(1.0)
        return hit, where

    def _starts(self, view: View, index: int, v: Tensor) -> Float[Tensor, "P S r"]:
        """Uniform in the unit ball of the span (a stream a seed and stage), or the clean point."""
        if self.start == "clean":
            return torch.zeros_like(v).unsqueeze(1)
        r = v.shape[1]
        draw = normals(
            view.seeds, f"attack.pgd.{index}", (view.shape[1], self.restarts, r + 1), torch.float64
        )
        draw = draw.flatten(0, 1)
        length = torch.special.ndtr(draw[..., -1:]) ** (1 / r)
        return normalize(draw[..., :-1], dim=-1) * length
