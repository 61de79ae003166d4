"""Experiment -> Run: the only place where data, net and training are wired together."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

import torch
from jaxtyping import Float
from pydantic import Field, field_validator, model_validator
from torch import Tensor

from unmix.data.base import Batch
from unmix.errors import DataError, SpecError
from unmix.nets.base import Classifier, Model, Params
from unmix.spec import AnySpec, Kind, Spec
from unmix.train.base import Checkpoint, Hooks, Start, Stop, Trace

# Points of a seed that would fill more bytes than this fit into no machine.
LIMIT = 2**47
# Replicas are trained together until their data and Gram matrices fill this many bytes.
MEMORY = 3 * 2**30


class Samples(Spec):
    """How many points a seed: for training, and held out for attacks and accuracies."""

    train: int = Field(1000, ge=1)
    test: int = Field(200, ge=1)


class Experiment(Spec):
    """All that a run depends on. Equal experiments have equal digests and equal results."""

    data: Annotated[AnySpec, Kind("data")]
    net: Annotated[AnySpec, Kind("nets")]
    train: Annotated[AnySpec, Kind("train")]
    samples: Samples = Samples()
    seeds: tuple[int, ...] = (0,)
    dtype: Literal["float32", "float64"] = "float64"

    @field_validator("seeds", mode="before")
    @classmethod
    def _listed(cls, seeds: object) -> object:
        return tuple(seeds) if isinstance(seeds, range | list) else seeds

    @model_validator(mode="after")
    def _runnable(self) -> Experiment:
        if not self.seeds:
            raise ValueError("seeds: expected at least one seed, got none")
        if len(set(self.seeds)) < len(self.seeds) or min(self.seeds) < 0:
            raise ValueError("seeds: expected distinct non-negative integers")
        points = max(self.samples.train, self.samples.test)
        if points * self.data.size * 8 > LIMIT:
            came = f"{points} points of {self.data.size} numbers fit into no machine"
            raise ValueError(f"samples: {came}: lower samples or data.d")
        self.net.check(self.data)
        self.train.check(self.net, self.data)
        return self

    @property
    def torch_dtype(self) -> torch.dtype:
        return torch.float32 if self.dtype == "float32" else torch.float64

    def with_(self, *assignments: str) -> Experiment:
        """A copy with `a.b=v` assignments applied, judged as a whole."""
        return self.override(*assignments)


@dataclass(frozen=True)
class Run:
    """A finished training: never mutated; a repair returns a new run that names its parent."""

    experiment: Experiment
    params: Params
    trace: Trace
    folder: Path | None = None
    parent: str | None = None

    @property
    def data(self) -> Any:
        """The distribution; its class is the experiment's."""
        return self.experiment.data

    @property
    def replicas(self) -> int:
        return len(self.experiment.seeds)

    @cached_property
    def classifier(self) -> Classifier:
        """The trained net, whatever its kind."""
        found: Classifier = self.experiment.net.classifier(self.data, self.params)
        return found

    @property
    def model(self) -> Model:
        """The trained net, if it is a two-layer net with a normal form."""
        if isinstance(self.classifier, Model):
            return self.classifier
        came = f"this needs a two-layer net in its normal form, not {self.experiment.net.named!r}"
        raise DataError(came, "see: unmix list nets")

    @cached_property
    def initial(self) -> Params:
        e = self.experiment
        return _moved(e.net.start(self.data, e.seeds, self.train_batch), self._device)

    @cached_property
    def centres(self) -> Float[Tensor, "R k d"]:
        centres: Tensor = self.data.centres(self.experiment.seeds, self.experiment.torch_dtype)
        return centres

    @cached_property
    def train_batch(self) -> Batch:
        return self._sample(self.experiment.samples.train, "train")

    @cached_property
    def test_batch(self) -> Batch:
        return self._sample(self.experiment.samples.test, "test")

    def fresh(self, n: int) -> Batch:
        """The first n held-out points of each seed."""
        return self._sample(n, "test")

    @property
    def _device(self) -> torch.device:
        return next(iter(self.params.values())).device

    def _sample(self, n: int, purpose: str) -> Batch:
        e = self.experiment
        batch: Batch = self.data.sample(e.seeds, n, purpose, e.torch_dtype)
        return batch


@dataclass(frozen=True)
class Supervisor:
    """What a caller may do while a run is under way: watch it, save its state, give one back."""

    progress: Callable[[int, int], None] = lambda done, total: None
    wants_checkpoint: Callable[[], bool] = lambda: False
    save: Callable[[str, Checkpoint], None] = lambda part, state: None
    load: Callable[[str], Checkpoint | None] = lambda part: None


def run(
    experiment: Experiment,
    *,
    device: str = "auto",
    threads: int | None = None,
    supervisor: Supervisor | None = None,
) -> Run:
    """Train every seed of an experiment and return the run, in memory."""
    (only,) = run_pack((experiment,), device=device, threads=threads, supervisor=supervisor)
    return only


def run_pack(
    experiments: Sequence[Experiment],
    *,
    device: str = "auto",
    threads: int | None = None,
    supervisor: Supervisor | None = None,
) -> list[Run]:
    """Train experiments of one pack as one tensor of replicas; `packs` finds them in a grid."""
    if len(packs(experiments)) != 1:
        raise SpecError("these experiments differ in more than a pack may", "run them one by one")
    supervisor = supervisor or Supervisor()
    place, lead = pick_device(device), experiments[0]
    parts = list(_parts(experiments))
    total = len(parts) * max(lead.train.length(), 1)
    done: list[list[tuple[Params, Trace]]] = []
    with using_threads(threads or threads_for(experiments)):
        for index, seeds in enumerate(parts):
            before = index * total // len(parts)
            watched = replace(supervisor, progress=_shifted(supervisor, before, total))
            done.append(_train(experiments, seeds, place, watched))
    supervisor.progress(total, total)
    return [
        Run(e, _joined([p for p, _ in parts]), _joined_traces([t for _, t in parts]))
        for e, parts in zip(experiments, zip(*done, strict=True), strict=True)
    ]


def packs(experiments: Sequence[Experiment]) -> list[list[Experiment]]:
    """Groups whose members share seeds, points and shapes, so that they can be trained as one.

    They differ at most in the fields that net and training list in `packs` (initial scales, step
    sizes) and in the number of test points. A group is cut where memory says so.
    """
    groups: dict[str, list[list[Experiment]]] = {}
    for experiment in experiments:
        found = groups.setdefault(_pack_key(experiment), [[]])
        if found[-1] and _replica_bytes(experiment) * (len(found[-1]) + 1) > MEMORY / 2:
            found.append([])
        found[-1].append(experiment)
    return [group for found in groups.values() for group in found]


def threads_for(experiments: Sequence[Experiment]) -> int:
    """Threads that pay for the sizes of a pack; a device other than a CPU has its own."""
    lead = experiments[0]
    return lead.train.threads(lead.net, lead.data, lead.samples.train, len(experiments), lead.dtype)


def pick_device(name: str) -> torch.device:
    """ "auto" is a GPU if there is one, else the CPU."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise SpecError(f"device {name!r} cannot be used: {reason}", "try --device cpu") from None
    return device


def _train(
    experiments: Sequence[Experiment],
    seeds: tuple[int, ...],
    device: torch.device,
    supervisor: Supervisor,
) -> list[tuple[Params, Trace]]:
    """Some seeds of a pack, from data to trace; what belongs to each experiment."""
    lead = experiments[0]
    data, net = lead.data, lead.net
    batch = data.sample(seeds, lead.samples.train, "train", lead.torch_dtype)
    starts = [e.net.start(data, seeds, batch) for e in experiments]
    # Replica s Q + q is experiment q on seed s.
    params = {name: torch.stack([p[name] for p in starts], 1).flatten(0, 1) for name in starts[0]}
    batch = batch.to(device)
    trainings = tuple(e.train for e in experiments)
    start = Start(net, data, _moved(params, device), batch, seeds, trainings)
    trainer = lead.train.begin(start)
    part = "-".join(str(seed) for seed in (seeds[0], seeds[-1]))
    if (state := supervisor.load(part)) is not None:
        trainer.resume(state)
    hooks = Hooks(
        progress=lambda step: supervisor.progress(step, lead.train.length()),
        wants_checkpoint=supervisor.wants_checkpoint,
        checkpoint=lambda state: supervisor.save(part, state),
    )
    params, trace = trainer.run(hooks)
    trace = replace(trace, final=_moved(trace.final, "cpu"), columns=_moved(trace.columns, "cpu"))
    params = _moved(params, "cpu")
    every = len(experiments)
    return [(_every(params, q, every), trace.every(q, every)) for q in range(every)]


def _every(tensors: Params, first: int, step: int) -> Params:
    return {name: t[first::step].clone() for name, t in tensors.items()}


def _pack_key(experiment: Experiment) -> str:
    plain = experiment.plain()
    plain["samples"].pop("test")
    for part, spec in (("net", experiment.net), ("train", experiment.train)):
        for name in spec.packs:
            plain[part].pop(name, None)
    return json.dumps(plain, sort_keys=True)


def _shifted(supervisor: Supervisor, before: int, total: int) -> Callable[[int, int], None]:
    """Progress of one part as progress of the whole."""
    return lambda step, _: supervisor.progress(before + step, total)


def _parts(experiments: Sequence[Experiment]) -> Iterator[tuple[int, ...]]:
    """Seeds in groups whose training fits into MEMORY; replicas share nothing, so groups agree."""
    lead = experiments[0]
    n, d = lead.samples.train, lead.data.size
    # X and a copy of it, and what coefficient space may ask for.
    shared = _bytes(lead) * (2 * n * d + n * n)
    each = shared + _replica_bytes(lead) * (len(experiments) - 1)
    together = max(1, int(MEMORY // each))
    for first in range(0, len(lead.seeds), together):
        yield lead.seeds[first : first + together]


def _replica_bytes(experiment: Experiment) -> int:
    """Weights and pre-activations of one replica, with the buffers of an engine."""
    n, d = experiment.samples.train, experiment.data.size
    return _bytes(experiment) * 4 * experiment.net.neurons(experiment.data) * (n + d)


def _bytes(experiment: Experiment) -> int:
    return 4 if experiment.dtype == "float32" else 8


@contextmanager
def using_threads(threads: int | None) -> Iterator[None]:
    """So many threads of torch within the block; None leaves their number alone."""
    before = torch.get_num_threads()
    if threads is not None:
        torch.set_num_threads(threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _moved(tensors: Params, device: torch.device | str) -> Params:
    return {name: t.to(device) for name, t in tensors.items()}


def _joined(parts: Sequence[Params]) -> Params:
    return {name: torch.cat([p[name] for p in parts]) for name in parts[0]}


def _joined_traces(parts: Sequence[Trace]) -> Trace:
    stops: tuple[Stop, ...] = tuple(stop for part in parts for stop in part.stops)
    columns = _joined([part.columns for part in parts])
    final = _joined([part.final for part in parts])
    return Trace(parts[0].steps, columns, stops, final, parts[0].times)
