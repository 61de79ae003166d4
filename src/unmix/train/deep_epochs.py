"""The loop of deep training: epochs over R replicas, records, snapshots, checkpoints.

Replicas are trained one after the other within each epoch and share nothing. Every random number
is a function of the seed, the epoch and the batch, so that a checkpoint between two epochs holds
the parameters, their velocities and what was recorded, and nothing else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import cross_entropy, pad

from unmix.data.base import Batch
from unmix.nets.base import Params
from unmix.nets.deep import DeepNet, passed, planes
from unmix.streams import stream
from unmix.train.base import Checkpoint, Hooks, Start, Stop, Trace
from unmix.train.descent import Order

if TYPE_CHECKING:
    from unmix.train.deep import DeepDescent

COLUMNS = ("loss", "accuracy", "test_accuracy")
ATTACKED = ("attacked_test_accuracy",)
# Pixels by which images are padded before they are cropped.
PAD = 4
Pixels = Float[Tensor, "n c h w"]


class DeepEpochs:
    """One training of R replicas, epoch by epoch."""

    def __init__(self, start: Start, train: DeepDescent) -> None:
        net: DeepNet = start.net
        self.train, self.net, self.data = train, net, start.data
        self.module, self.trained = net.module(start.data), net.names(start.data)
        self.params = {name: value.clone() for name, value in start.params.items()}
        self.velocity = {n: torch.zeros_like(self.params[n]) for n in self.trained}
        self.batch = start.batch
        like, seeds = start.batch.x, start.seeds
        held = start.data.sample(seeds, train.watch, "test", like.dtype)
        self.held = held.to(like.device)
        self.order = Order(seeds, start.batch.points, train.batch)
        self.steps = train.record.steps(train.epochs)
        self.rows: list[Tensor] = []
        self.kept: Params = {}
        self.stops: list[Stop | None] = [None] * start.replicas
        self.first = 0

    def run(self, hooks: Hooks) -> tuple[Params, Trace]:
        """Train to the end; `hooks` may save checkpoints between epochs."""
        for epoch in range(self.first, self.train.epochs + 1):
            if epoch > self.first and hooks.wants_checkpoint():
                hooks.checkpoint(self._checkpoint(epoch))
            if epoch in self.steps:
                self.rows.append(self._look())
            if epoch in self.train.snapshots:
                self.kept |= {snapshot(epoch, n): t.cpu().clone() for n, t in self.params.items()}
            hooks.progress(epoch)
            if epoch == self.train.epochs:
                break
            for replica, stop in enumerate(self.stops):
                if stop is None:
                    self._epoch(replica, epoch)
        return self.params, self._trace()

    def resume(self, state: Checkpoint) -> None:
        """Go on from a checkpoint of the same training."""
        self.first, self.stops = state.step, list(state.stops)
        held = state.tensors
        self.params = {n: held[f"params.{n}"].clone() for n in self.params}
        self.velocity = {n: held[f"velocity.{n}"].clone() for n in self.velocity}
        self.rows = list(held["rows"].cpu()) if "rows" in held else []
        self.kept = {n: t.cpu() for n, t in held.items() if n.startswith(EPOCH)}

    def _epoch(self, replica: int, epoch: int) -> None:
        """All batches of one epoch, for one replica; one that blows up is put back and stopped."""
        before = {name: t[replica].clone() for name, t in self.params.items()}
        mine = {name: t[replica] for name, t in self.params.items()}
        seed = self.order.seeds[replica]
        images, y = self._images(self.batch, replica), self._row(self.batch.y, replica)
        images = self._augmented(images, seed, epoch)
        batches = self.order.permutation(seed, epoch).to(y.device).split(self.train.batch)
        for turn, rows in enumerate(b for b in batches if len(b) > 1):
            x = self._attacked(mine, images[rows], y[rows], seed, (epoch, turn))
            rate = self.train.rate((epoch + turn / len(batches)) / self.train.epochs)
            self._move(replica, mine, self._gradient(mine, x, y[rows]), rate)
        if all(t.isfinite().all() for t in mine.values()):
            return
        for name, value in before.items():
            self.params[name][replica] = value
        advice = f"lower train.eta (now {self.train.eta:g})"
        self.stops[replica] = Stop("diverged", epoch, advice)

    def _gradient(self, mine: Params, x: Pixels, y: Int[Tensor, " n"]) -> Params:
        """Of the mean cross-entropy, by autograd."""
        leaves = {n: t.detach().requires_grad_(n in self.velocity) for n, t in mine.items()}
        self.module.train()
        with self._precision(x.device):
            outputs = passed(self.module, leaves, x)[1]
        loss = cross_entropy(outputs.to(x.dtype), y)
        found = torch.autograd.grad(loss, [leaves[n] for n in self.trained])
        return dict(zip(self.trained, found, strict=True))

    def _move(self, replica: int, mine: Params, slopes: Params, rate: float) -> None:
        """One step of momentum, in place."""
        t = self.train
        with torch.no_grad():
            for name, g in slopes.items():
                v = self.velocity[name][replica]
                v.mul_(t.momentum).add_(g).add_(mine[name], alpha=t.decay)
                mine[name].add_(v, alpha=-rate)

    def _attacked(
        self, mine: Params, x: Pixels, y: Int[Tensor, " n"], seed: int, when: tuple[int, int]
    ) -> Pixels:
        """What is trained on."""
        if (ascent := self.train.ascent) is None:
            return x
        draws = stream(seed, f"train.attack.{when[0]}.{when[1]}").uniform(-1, 1, x.shape)
        start = torch.from_numpy(draws).to(x)
        with self._precision(x.device):
            return ascent.moved(self.module, mine, x, y, start, ascent.radius(when[0])).to(x.dtype)

    def _augmented(self, images: Pixels, seed: int, epoch: int) -> Pixels:
        """Random crops and flips, drawn for all points of an epoch at once."""
        if self.train.augment == "none":
            return images
        draw = stream(seed, f"train.augment.{epoch}")
        corner = torch.from_numpy(draw.integers(0, 2 * PAD + 1, (len(images), 2)))
        flip = torch.from_numpy(draw.integers(0, 2, len(images)).astype(bool))
        flip = flip if self.train.augment == "crop-flip" else torch.zeros_like(flip)
        return cropped(images, corner.to(images.device), flip.to(images.device))

    def _look(self) -> Float[Tensor, "R columns"]:
        """What is recorded before an epoch; a stopped replica keeps its last row."""
        found = []
        for replica, stop in enumerate(self.stops):
            if stop is not None and self.rows:
                found.append(self.rows[-1][replica])
                continue
            found.append(torch.tensor(self._seen(replica), dtype=torch.float64))
        return torch.stack(found)

    def _seen(self, replica: int) -> list[float]:
        """One replica's row."""
        mine = {name: t[replica] for name, t in self.params.items()}
        x, y = self._images(self.batch, replica), self._row(self.batch.y, replica)
        loss, right = self._judged(mine, x[: self.train.watch], y[: self.train.watch])
        x, y = self._images(self.held, replica), self._row(self.held.y, replica)
        row = [loss, right, self._judged(mine, x, y)[1]]
        if (ascent := self.train.ascent) is not None:
            moved = [
                ascent.moved(self.module, mine, part, labels, torch.zeros_like(part), ascent.eps)
                for part, labels in zip(
                    x.split(self.train.batch), y.split(self.train.batch), strict=True
                )
            ]
            row.append(self._judged(mine, torch.cat(moved), y)[1])
        return row

    @torch.no_grad()
    def _judged(self, mine: Params, x: Pixels, y: Int[Tensor, " n"]) -> tuple[float, float]:
        """Mean cross-entropy and accuracy, in the net's own precision."""
        self.module.eval()
        outputs = torch.cat([passed(self.module, mine, p)[1] for p in x.split(self.train.batch)])
        right = (outputs.argmax(-1) == y).double().mean()
        return float(cross_entropy(outputs, y)), float(right)

    def _images(self, batch: Batch, replica: int) -> Pixels:
        return planes(self._row(batch.x, replica), self.data)

    def _row(self, of: Tensor, replica: int) -> Tensor:
        """A replica's own row, or the one that all share."""
        return of[replica % len(of)]

    def _precision(self, device: torch.device) -> torch.autocast:
        mixed = self.train.precision == "mixed" and device.type == "cuda"
        return torch.autocast(device.type, torch.bfloat16, enabled=mixed)

    def _checkpoint(self, epoch: int) -> Checkpoint:
        tensors = {f"params.{n}": t.clone() for n, t in self.params.items()} | self.kept
        tensors |= {f"velocity.{n}": t.clone() for n, t in self.velocity.items()}
        if self.rows:
            tensors["rows"] = torch.stack(self.rows)
        return Checkpoint(epoch, tensors, list(self.stops))

    def _trace(self) -> Trace:
        names = COLUMNS if self.train.ascent is None else COLUMNS + ATTACKED
        return Trace.of_rows(self.steps, names, self.rows, self.stops, self.kept)


EPOCH = "epoch"


def snapshot(epoch: int, name: str) -> str:
    """What the trace calls a parameter after an epoch."""
    return f"{EPOCH}{epoch}.{name}"


def at_epoch(final: Params, epoch: int) -> Params:
    """The parameters of a snapshot."""
    start = snapshot(epoch, "")
    return {name.removeprefix(start): t for name, t in final.items() if name.startswith(start)}


def cropped(images: Pixels, corner: Int[Tensor, "n 2"], flip: Tensor) -> Pixels:
    """Each image cut out of its padded self at a corner in 0..2 PAD, mirrored where asked."""
    n, _, height, width = images.shape
    down = corner[:, :1] + torch.arange(height, device=images.device)
    along = torch.arange(width, device=images.device).expand(n, -1)
    along = corner[:, 1:] + torch.where(flip.unsqueeze(1), along.flip(1), along)
    which = torch.arange(n, device=images.device)[:, None, None]
    return pad(images, (PAD,) * 4)[which, :, down[:, :, None], along[:, None, :]].movedim(-1, 1)
