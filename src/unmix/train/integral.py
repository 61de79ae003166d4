"""One replica's flow under way: steps, records at declared times, events, and its end."""

from __future__ import annotations

import math

import torch
from jaxtyping import Float
from torch import Tensor

from unmix.train.base import Reason, Stop
from unmix.train.bogacki_shampine import (
    EVALUATIONS,
    Step,
    attempt,
    first_step,
    longest,
    next_step,
)
from unmix.train.fields import Field, State

COLUMNS = (
    "loss",
    "margin",
    "margin_min",
    "margin_max",
    "accuracy",
    "output_max",
    "evaluations",
)
# Pruning before the fit loses clusters that are still to be learned.
FITTED = 0.05
# Shorter steps (of the whole time) are of no use: an overflow does not go away.
SHORTEST = 1e-15
# |f| = 1 ends the alignment phase.
ESCAPED = 1.0
# An event is found to this power of two of a step.
BISECTIONS = 12


class Integral:
    """From t = 0 to the last of the declared times, or to an event."""

    TOTALS = ("evaluations", "accepted", "rejected", "escape_time", "frozen")

    def __init__(
        self,
        field: Field,
        start: State,
        times: tuple[float, ...],
        tolerance: float,
        until_loss: float | None,
        until_output: float | None,
        prune: float,
        limit: int,
    ) -> None:
        self.full, self.field, self.start, self.now = field, field, start, start
        self.times, self.tolerance, self.limit = times, tolerance, limit
        self.until_loss, self.until_output, self.prune = until_loss, until_output, prune
        self.kept: Tensor | None = None
        self.stop: Stop | None = None
        self.rows: list[Tensor] = []
        self.t, self.evaluations, self.accepted, self.rejected = 0.0, 1, 0, 0
        self.escape = math.nan
        self.motion = field.motion(start)
        self.dt = first_step(self.motion)
        self.rows.append(self._row(self.motion.f))
        self._watch_start()

    def advance(self) -> None:
        """One accepted step, with the records that fall into it."""
        step = self._accepted()
        if step is None:
            return
        event = self._reached(step.after.f)
        part = 1.0 if event is None else self._first(step, event)
        end = self.t + part * step.dt
        self._record(step, end)
        self._note_escape(step)
        if event is not None:
            self.now = step.at(part)
            self._finish(event, end, self.field.outputs(self.now))
            return
        self.now, self.motion, self.t = step.end, step.after, end
        if end >= self.times[-1]:
            self._finish("time", end, self.motion.f)
            return
        self._turn_over()
        self._freeze()

    def part(self) -> float:
        """How much of the way is done, in logarithm of the time."""
        scale = self.times[-1] / 1000
        done = math.log1p(self.t / scale) / math.log1p(self.times[-1] / scale)
        return 1.0 if self.stop is not None else min(done, 1.0)

    def whole(self) -> State:
        """All neurons, the frozen ones as they were."""
        if self.kept is None:
            return self.now
        u, a = self.start.u.clone(), self.start.a.clone()
        u[self.kept], a[self.kept] = self.now.u, self.now.a
        return State(u, a)

    def table(self) -> Float[Tensor, "T columns"]:
        return torch.stack(self.rows)

    def totals(self) -> Float[Tensor, " totals"]:
        frozen = 0 if self.kept is None else len(self.start.a) - len(self.kept)
        counts = [self.evaluations, self.accepted, self.rejected, self.escape, frozen]
        return torch.tensor(counts, dtype=torch.float64)

    def state(self) -> dict[str, Tensor]:
        """What must be saved to go on later, bit for bit."""
        whole = self.whole()
        kept = torch.arange(len(whole.a)) if self.kept is None else self.kept
        clock = [self.t, self.dt, self.evaluations, self.accepted, self.rejected, self.escape]
        return {
            "u": whole.u,
            "a": whole.a,
            "kept": kept.cpu(),
            "rows": torch.stack(self.rows),
            "clock": torch.tensor(clock, dtype=torch.float64),
        }

    def restore(self, state: dict[str, Tensor]) -> None:
        """Go on from a saved state; the motion there is computed again, to the same bits."""
        self.now, self.kept = State(state["u"], state["a"]), None
        if len(state["kept"]) < len(state["a"]):
            self._keep(state["kept"].to(state["a"].device))
        self.rows = list(state["rows"].cpu())
        clock = state["clock"].tolist()
        self.t, self.dt, self.escape = clock[0], clock[1], clock[5]
        self.evaluations, self.accepted, self.rejected = (int(c) for c in clock[2:5])
        self.motion = self.field.motion(self.now)

    def _accepted(self) -> Step | None:
        """The first step that is accurate enough; None if the flow ends before it."""
        while self.evaluations + EVALUATIONS <= self.limit:
            left = self.times[-1] - self.t
            dt = min(self.dt, longest(self.motion))
            # Neither a last step of a rounding error's length, nor one that misses the end.
            dt = left if dt > 0.99 * left else dt
            step = attempt(self.field, self.now, self.motion, dt)
            self.evaluations += EVALUATIONS
            # An overflow on the way says that the step was too long; one at its start stays.
            if not math.isfinite(self.motion.fastest) or dt < SHORTEST * self.times[-1]:
                advice = "lower train.tolerance, or check the data and the initial weights"
                self._finish("diverged", self.t, self.motion.f, advice)
                return None
            self.dt = next_step(dt, step.error, self.tolerance)
            if step.error <= self.tolerance:
                self.accepted += 1
                return step
            self.rejected += 1
        advice = f"raise train.evaluations (now {self.limit}) or train.tolerance"
        self._finish("stalled", self.t, self.motion.f, advice)
        return None

    def _reached(self, f: Tensor) -> Reason | None:
        """The event that outputs f have reached."""
        if self.until_loss is not None and self.field.mean_loss(f) <= self.until_loss:
            return "loss"
        if self.until_output is not None and float(f.abs().max()) >= self.until_output:
            return "escape"
        return None

    def _first(self, step: Step, event: Reason) -> float:
        """The part of a step at which its event is met, by bisection on the dense output."""
        low, high = 0.0, 1.0
        for _ in range(BISECTIONS):
            middle = (low + high) / 2
            met = self._reached(self.field.outputs(step.at(middle))) == event
            low, high = (low, middle) if met else (middle, high)
        return high

    def _record(self, step: Step, end: float) -> None:
        """Rows of the declared times within a step that counts up to `end`."""
        while len(self.rows) < len(self.times) and self.times[len(self.rows)] <= end:
            t = self.times[len(self.rows)]
            f = step.after.f if t == self.t + step.dt else self._dense(step, t)
            self.rows.append(self._row(f))

    def _dense(self, step: Step, t: float) -> Tensor:
        return self.field.outputs(step.at((t - self.t) / step.dt))

    def _row(self, f: Float[Tensor, " n"]) -> Float[Tensor, " columns"]:
        margin, share = (self.field.y * f).double(), self.field.share
        values = [
            self.field.mean_loss(f),
            float((margin * share).sum()),
            float(margin.min()),
            float(margin.max()),
            float(((margin > 0) * share).sum()),
            float(f.abs().max()),
            float(self.evaluations),
        ]
        return torch.tensor(values, dtype=torch.float64)

    def _finish(self, reason: Reason, t: float, f: Tensor, advice: str = "") -> None:
        """The end; declared times that lie behind it repeat its row."""
        self.t = t
        self.stop = Stop(reason, self.accepted, advice, t)
        self.rows += [self._row(f)] * (len(self.times) - len(self.rows))

    def _watch_start(self) -> None:
        """A start that has reached an event goes nowhere."""
        if (event := self._reached(self.motion.f)) is not None:
            self._finish(event, 0.0, self.motion.f)

    def _note_escape(self, step: Step) -> None:
        """When max |f| first reached 1, linearly in its logarithm within the step."""
        if not math.isnan(self.escape):
            return
        low, high = (float(m.f.abs().max()) for m in (step.before, step.after))
        if high >= ESCAPED:
            rise = math.log(high / low) if 0 < low < high else 0.0
            part = math.log(ESCAPED / low) / rise if rise > 0 else 0.0
            self.escape = self.t + max(part, 0.0) * step.dt

    def _turn_over(self) -> None:
        """Neurons that went through w = 0 go on along -u."""
        crossed = self.field.angles.crossed(self.now.a)
        if crossed.any():
            sign = torch.where(crossed, -1.0, 1.0)
            self.now = State(self.now.u * sign.to(self.now.u).unsqueeze(-1), self.now.a * sign)
            self.motion = self.field.motion(self.now)
            self.evaluations += 1

    def _freeze(self) -> None:
        """Leave negligible neurons behind, once, after the fit."""
        if self.prune == 0 or self.kept is not None:
            return
        if self.field.mean_loss(self.motion.f) >= FITTED:
            return
        q = self.field.angles.q(self.now.a).abs()
        self._keep((q >= self.prune * q.sum()).nonzero().flatten())
        self.motion = self.field.motion(self.now)
        self.evaluations += 1

    def _keep(self, kept: Tensor) -> None:
        self.start, self.kept = self.now, kept
        self.now = State(self.start.u[kept], self.start.a[kept])
        self.field = self.full.take(kept)
