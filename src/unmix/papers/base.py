"""What a paper is made of, and the evidence on which its claims are judged.

A paper is a value that names things; nothing heavy is imported until a claim is measured.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

from unmix.claims import Claim, Sample, Scale, Verdict, Verdicts, judge, not_run
from unmix.errors import (
    AttackError,
    CertificateError,
    Contradiction,
    UnknownName,
    UnmixError,
    nearest,
)
from unmix.papers.contents import Finding, Item
from unmix.papers.story import Explorer, Scene

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

    from unmix.attacks.base import Attacked
    from unmix.attacks.suite import AttackPlan
    from unmix.certify.base import Certificate
    from unmix.certify.choice import CertifyPlan
    from unmix.experiment import Experiment, Run
    from unmix.probes.base import Measured

Size = Literal["quick", "paper"]


@dataclass(frozen=True)
class FigureEntry:
    """A figure of a paper: which settings it needs and the function that draws it.

    `place` names the item that it shows; without one, a name that starts with a digit is that of
    a figure of the paper: "3-left" belongs to Fig 3.
    """

    name: str
    title: str
    draw: str = ""
    settings: tuple[str, ...] = ()
    why_not: str = ""
    place: str = ""

    @property
    def shows(self) -> str:
        return self.place or f"Fig {self.name}"


@dataclass(frozen=True)
class Drawing:
    """A drawn figure with its numbers (equal-length columns) and the words around it."""

    canvas: Canvas
    table: dict[str, list[Any]]
    caption: str
    alt: str


@dataclass(frozen=True)
class Setting:
    """An experiment that several claims share; a plan of attack asks for its robustness, too.

    Settings may share one experiment: it is trained once, and each is attacked by its own plan.
    `why_not` says why it cannot be run here, if so: its images are not at hand. `shrinks` names
    the setting that it stands for, where that one is too large for `--paper` itself.
    """

    experiment: Experiment
    attack: AttackPlan | None = None
    why_not: str = ""
    certify: CertifyPlan | None = None
    shrinks: str = ""


@dataclass(frozen=True)
class Prediction:
    """A closed form for a setting; `measure` names a function that returns a `Beside`."""

    quantity: str
    setting: str
    measure: str


@dataclass(frozen=True)
class Contender:
    """A net and its training, as a row of the table across papers.

    `certified` and `best` name functions of the paper's measures that return a `Certificate` and
    a `Best`; empty, they are what the setting's plan and its data say. Attacks of the settings
    `also` on the same net join the union.
    """

    title: str
    setting: str
    also: tuple[str, ...] = ()
    certified: str = ""
    best: str = ""


@dataclass(frozen=True)
class Paper:
    """A source with everything that is judged or drawn; modules are named, not imported."""

    name: str
    title: str
    authors: str
    bibtex: str
    claims: tuple[Claim, ...]
    figures: tuple[FigureEntry, ...]
    package: str
    contents: tuple[Item, ...] = ()
    findings: tuple[Finding, ...] = ()
    predictions: tuple[Prediction, ...] = ()
    contenders: tuple[Contender, ...] = ()
    story: tuple[Scene, ...] = ()
    explorer: str = ""
    explored: tuple[str, ...] = ()
    datasets: tuple[str, ...] = ()

    def settings(self, size: Size) -> dict[str, Setting]:
        """Every experiment of the paper at one size."""
        table: dict[str, Setting] = import_module(f"{self.package}.settings").settings(size)
        return table

    def claim(self, name: str) -> Claim:
        return _named(name, {c.name: c for c in self.claims}, "claim")

    def figure(self, name: str) -> FigureEntry:
        return _named(name, {f.name: f for f in self.figures}, "figure")

    def measure(self, claim: Claim, evidence: Evidence) -> Sample:
        """Take a claim's measurement."""
        sample: Sample = self.take(claim.measure, evidence.expand(claim.settings), evidence)
        return sample

    def take(self, measure: str, settings: tuple[str, ...], evidence: Evidence) -> Any:
        """What a measure finds on some settings.

        "probe.value" reads a probe; "module:function" calls a function of the paper's measures
        with the evidence and the settings; "module:function of what" puts `what` before them.
        """
        module, colon, name = measure.partition(":")
        if not colon:
            (setting,) = settings
            return evidence.value(setting, measure)
        function, of, what = name.partition(" of ")
        taken = getattr(import_module(f"{self.package}.measures.{module}"), function)
        return taken(evidence, *([what] if of else []), *settings)

    def explore(self, evidence: Evidence) -> Explorer | None:
        """What `explorer` ("module:function" of the paper's figures) makes of `explored`."""
        if not self.explorer or evidence.why_not(self.explored):
            return None
        module, _, function = self.explorer.partition(":")
        made = getattr(import_module(f"{self.package}.figures.{module}"), function)
        explorer: Explorer = made(evidence, *self.explored)
        return explorer

    def draw(self, figure: FigureEntry, evidence: Evidence) -> Drawing:
        drawing: Drawing = getattr(import_module(f"{self.package}.figures"), figure.draw)(evidence)
        return drawing


AttackedBy = Callable[["Run", "AttackPlan"], "Attacked"]
CertifiedBy = Callable[["Run", "CertifyPlan"], "Certificate"]


@dataclass(frozen=True)
class Source:
    """Where runs, attacks and certificates come from: a store, or plain memory."""

    run: Callable[[Experiment], Run]
    attacked: AttackedBy
    certified: CertifiedBy = lambda run, plan: plan.certify(run)


@dataclass
class Evidence:
    """Runs, probes and attacks of one paper at one size, each obtained once."""

    settings: Mapping[str, Setting]
    full: Mapping[str, Setting]
    source: Source
    runs: dict[str, Run] = field(default_factory=dict)
    probes: dict[tuple[str, str], Measured] = field(default_factory=dict)
    attacks: dict[str, Attacked] = field(default_factory=dict)
    certificates: dict[str, Certificate] = field(default_factory=dict)
    # Red flags of every attack whose outcome was read; `watched` begins a list of its own.
    flags: list[str] = field(default_factory=list)

    def watched(self) -> Evidence:
        """The same evidence, with the red flags of what is read from now on."""
        return replace(self, flags=[])

    @property
    def flagged(self) -> str:
        """The red flags in one line; empty if there are none."""
        return "; ".join(f"red flag, {flag}" for flag in self.flags)

    def expand(self, settings: tuple[str, ...]) -> tuple[str, ...]:
        """Names of settings; "binary-k*" stands for every rung of that ladder at this size."""
        names: list[str] = []
        for setting in settings:
            stem = setting.removesuffix("*")
            # A rung is the stem and a number: "binary-n*" does not mean "binary-next".
            rungs = [n for n in self.settings if n.removeprefix(stem).isdigit()]
            names += rungs if stem != setting and rungs else [setting]
        return tuple(names)

    def why_not(self, settings: tuple[str, ...]) -> str:
        """Why these settings are no evidence at this size and place; empty if they are."""
        names = self.expand(settings)
        if missing := [s for s in names if s not in self.settings]:
            return "only at paper size: " + ", ".join(missing)
        return next(filter(None, (self.settings[s].why_not for s in names)), "")

    def run(self, setting: str) -> Run:
        if setting not in self.runs:
            self.runs[setting] = self.source.run(self.settings[setting].experiment)
        return self.runs[setting]

    def probe(self, setting: str, probe: str) -> Measured:
        from unmix.probes import base

        key = (setting, probe)
        if key not in self.probes:
            self.probes[key] = base.probe(self.run(setting), probe)
        return self.probes[key]

    def attacked(self, setting: str) -> Attacked:
        plan = self.settings[setting].attack
        if plan is None:
            raise AttackError(f"{setting} asks for no attack", "give its setting an AttackPlan")
        if setting not in self.attacks:
            self.attacks[setting] = self.source.attacked(self.run(setting), plan)
        found = self.attacks[setting]
        told = [f"{setting}: {flag}" for flag in found.flags]
        self.flags += [flag for flag in told if flag not in self.flags]
        return found

    def certified(self, setting: str) -> Certificate:
        """Brackets of robust radii; where the setting is attacked, too, the sandwich is checked."""
        from unmix.certify.base import sandwich

        plan, attack = self.settings[setting].certify, self.settings[setting].attack
        if plan is None:
            message = f"{setting} asks for no certificate"
            raise CertificateError(message, "give its setting a CertifyPlan")
        if setting not in self.certificates:
            found = self.source.certified(self.run(setting), plan)
            if attack is not None and attack.suite.threat.norm == found.norm:
                # The check alone: a certificate does not rest on the attack, nor on its flags.
                smallest = self.watched().attacked(setting).smallest
                sandwich(found.lower, smallest, f"{setting}: an attack")
            self.certificates[setting] = found
        return self.certificates[setting]

    def value(self, setting: str, what: str) -> Sample:
        """One value of one probe, named "probe.value"."""
        probe, _, value = what.partition(".")
        return self.sample(setting, self.probe(setting, probe)[value])

    def sample(self, setting: str, values: Any, note: str = "") -> Sample:
        """A sample whose premise is that training finished on every replica."""
        stopped = self.run(setting).trace.diverged
        failed = (f"{len(stopped)} replicas of {setting} diverged",) if stopped else ()
        return Sample([float(v) for v in values], failed, note)

    def scale(self, claim: Claim, settings: tuple[str, ...]) -> Scale:
        """The paper's own scale iff every setting has its hyper-parameters; seeds do not count.

        An asymptotic law has no run at full scale: its assumptions hold at no feasible size.
        """
        if claim.kind == "law":
            return "reduced"
        here = {s: self.settings[s] for s in settings}
        full = {s: self.full[setting.shrinks or s] for s, setting in here.items()}
        same = all(_same(here[s].experiment, full[s].experiment) for s in settings)
        return "paper" if same else "reduced"


def verdict(paper: Paper, claim: Claim, evidence: Evidence) -> Verdict:
    """Measure and judge one claim; what cannot be measured here is not-run, with the reason."""
    if not claim.measure:
        return not_run(claim, claim.why_not)
    if why := evidence.why_not(claim.settings):
        return not_run(claim, why)
    settings, watched = evidence.expand(claim.settings), evidence.watched()
    try:
        sample = paper.measure(claim, watched)
    except Contradiction:
        raise
    except UnmixError as error:
        return not_run(claim, f"cannot be measured: {error.message}")
    sample = replace(sample, note="; ".join(filter(None, (sample.note, watched.flagged))))
    digests = tuple(evidence.settings[s].experiment.digest() for s in settings)
    return judge(claim, sample, evidence.scale(claim, settings), digests)


def verdicts(run: Run, attacked: AttackedBy | None = None, known: Collection[str] = ()) -> Verdicts:
    """Judge a run on every claim that one such run decides.

    `attacked` may bring attacks from a store; claims that are `known` are left out.
    """
    found = []
    for paper, evidence in alone(run, attacked):
        mine = tuple(evidence.settings)
        claims = [c for c in paper.claims if c.settings == mine and c.name not in known]
        found += [verdict(paper, claim, evidence) for claim in claims]
    return Verdicts(found)


def alone(run: Run, attacked: AttackedBy | None = None) -> Iterator[tuple[Paper, Evidence]]:
    """Each paper with a setting of the run's hyper-parameters, whatever its seeds, and the run as
    the evidence for that setting."""
    from unmix import catalog

    source = Source(lambda e: run, attacked or (lambda run, plan: plan.curve(run)))
    for name in catalog.names("papers"):
        paper: Paper = catalog.load("papers", name)
        full = paper.settings("paper")
        for setting, planned in full.items():
            if _same(planned.experiment, run.experiment):
                yield paper, Evidence({setting: _on(run, planned)}, full, source)


def _on(run: Run, setting: Setting) -> Setting:
    """A setting at a run's own seeds and points."""
    return replace(setting, experiment=run.experiment, why_not="")


def _same(one: Experiment, other: Experiment) -> bool:
    """Equal but for what does not change the science: seeds, test points, engine, records."""
    return _essence(one) == _essence(other)


def _essence(experiment: Experiment) -> dict[str, Any]:
    plain = experiment.plain()
    plain.pop("seeds")
    plain["samples"].pop("test")
    for name in ("engine", "record"):
        plain["train"].pop(name, None)
    return plain


def _named(name: str, table: Mapping[str, Any], what: str) -> Any:
    if name not in table:
        raise UnknownName(f"there is no {what} {name!r}", nearest(name, table))
    return table[name]
