"""What a reproduction will cost on this machine, said before it starts."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from unmix.store import Store
from unmix.sweep import Job, distinct, is_done
from unmix.train.engines.costs import WIDTHS, measured

# Multiplications a second of a whole training (drawing its points, steps, records), as a share of
# the speed of a matrix product of its width and dtype: measured over feature averaging at quick
# size, whose nets have ten neurons.
SHARE, NEURONS = 0.27, 10
# Runs of one kind of training must have taken so many seconds to say more than that.
ENOUGH = 2.0


@dataclass(frozen=True)
class Forecast:
    """Runs in all and still to be made, and the CPU seconds that those will take."""

    runs: int
    left: int
    seconds: float


def forecast(store: Store, jobs: Iterable[Job]) -> Forecast:
    """From the jobs' counts of multiplications, and what such runs took before in this store."""
    every = distinct(jobs)
    left = [job for job in every if not is_done(store, job)]
    speeds, usual = _speeds(store, every), usual_speed()
    seconds = 0.0
    for job in left:
        e = job.experiment
        speed = speeds.get(e.train.kind, usual_speed(e.dtype, e.net.neurons(e.data)))
        trained = store.find(e) is not None
        attack = job.cost() - job.training_cost()
        seconds += attack / usual + (0 if trained else job.training_cost() / speed)
    return Forecast(len(every), len(left), seconds)


def usual_speed(dtype: str = "float64", neurons: int = NEURONS) -> float:
    """Multiplications a second where nothing is known but the speed of the machine."""
    rate = np.interp(np.log(max(neurons, 1)), np.log(WIDTHS), measured().rates[dtype][1].multiply)
    return SHARE / float(rate)


def _speeds(store: Store, jobs: Sequence[Job]) -> dict[str, float]:
    """Multiplications a second of each kind of training that this store has runs of."""
    cost: dict[str, float] = defaultdict(float)
    took: dict[str, float] = defaultdict(float)
    for job in jobs:
        with suppress(OSError, ValueError, KeyError):
            text = (store.folder(job.experiment) / "env.json").read_text(encoding="utf-8")
            took[job.experiment.train.kind] += float(json.loads(text)["seconds"])
            cost[job.experiment.train.kind] += job.training_cost()
    return {kind: cost[kind] / seconds for kind, seconds in took.items() if seconds >= ENOUGH}
