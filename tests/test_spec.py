"""Specs round-trip exactly, are equal when their digests are, and say what is wrong and where."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from unmix import catalog
from unmix.data.clusters import Clusters
from unmix.data.images.distribution import Images
from unmix.data.patches import Patches
from unmix.data.sparse_code import SparseCode
from unmix.errors import SpecError
from unmix.experiment import Experiment, Samples
from unmix.nets.constructed import FeatureAveraging
from unmix.nets.contrast import CodeTangent
from unmix.nets.deep import ResNet
from unmix.nets.k_class import KClass
from unmix.nets.patch_cnn import PatchCnn
from unmix.nets.prelu_classes import PReLUClasses
from unmix.nets.symmetric import Symmetric
from unmix.nets.two_layer import TwoLayer
from unmix.spec import Spec, read, schema
from unmix.train.adam import Adam
from unmix.train.contrast import ContrastDescent
from unmix.train.deep import DeepAdversarial
from unmix.train.descent import GradientDescent, NoTraining
from unmix.train.engines.patch_ascent import Ascent
from unmix.train.noisy_descent import NoisyDescent
from unmix.train.patches import PatchAdversarial

BASE = Experiment(data=Clusters(k=4, d=32), net=TwoLayer(), train=GradientDescent())
IMAGES = Experiment(data=Images(), net=PReLUClasses(), train=Adam())
# Kinds that fit into another experiment than BASE.
HOMES = {
    "data.images": IMAGES,
    "data.features": IMAGES,
    "net.prelu-classes": IMAGES,
    "train.adam": IMAGES,
}
# A finite p needs a ball to shrink to, so the attack's clip is not the default one here.
CNN = Experiment(
    data=Patches(), net=PatchCnn(), train=PatchAdversarial(attack=Ascent(clip="input"))
)
HOMES |= {"data.patches": CNN}
HOMES |= {f"net.{name}": CNN for name in ("patch-cnn", "patch-robust", "patch-non-robust")}
HOMES |= {f"train.{name}": CNN for name in ("patch-adversarial", "patch-descent")}
HOMES |= {"train.patch-recursion": CNN}
DEEP = Experiment(data=Images(), net=ResNet(), train=DeepAdversarial())
HOMES |= {f"net.{name}": DEEP for name in ("resnet", "wide-resnet")}
HOMES |= {f"train.{name}": DEEP for name in ("deep-descent", "deep-adversarial")}
CODED = Experiment(data=SparseCode(), net=Symmetric(), train=NoisyDescent())
HOMES |= {"data.sparse-code": CODED, "net.symmetric": CODED}
SIMPLE = Experiment(data=SparseCode(), net=CodeTangent(), train=ContrastDescent())
HOMES |= {f"net.code-{name}": SIMPLE for name in ("linear", "polynomial", "tangent")}
HOMES |= {"train.contrast-descent": SIMPLE}
HOMES |= {f"train.{name}": CODED for name in ("noisy-descent", "purification")}

floats = st.floats(allow_nan=False, allow_infinity=False)
positives = st.floats(min_value=0, exclude_min=True, allow_nan=False, allow_infinity=False)
scales = st.floats(min_value=0, allow_nan=False, allow_infinity=False)
zero_one = st.sampled_from([0, 1])


def table(**fields: object) -> st.SearchStrategy[dict]:
    """Plain data: values are built in the test, where beartype may use `random`."""
    strategies = {
        n: f if isinstance(f, st.SearchStrategy) else st.just(f) for n, f in fields.items()
    }
    return st.fixed_dictionaries(strategies)


@st.composite
def clusters(draw) -> dict:
    k = draw(st.integers(2, 12))
    order = draw(st.permutations(range(k)))
    cut = draw(st.integers(1, k - 1))
    parts = {"positive": order[:cut], "negative": order[cut:]}
    named = {name: parts[name] for name in draw(st.sets(st.sampled_from(list(parts))))}
    fields = table(
        kind="clusters",
        k=k,
        d=st.integers(k, 10**6),
        alpha=positives,
        sigma=scales,
        cosine=st.floats(-1 / k, 1, exclude_max=True),
        weights=st.none() | st.tuples(*[positives] * k),
        sizes=st.sampled_from(["sampled", "balanced"]),
        scale=st.sampled_from(["sqrt-d", "unit"]),
    )
    return draw(fields) | named


readings = st.sampled_from(["paper", "slides-divide", "label-free"])
records = table(
    schedule=st.sampled_from(["log", "linear"]),
    points=st.integers(2, 10**6),
    coefficients=st.lists(readings, unique=True),
)
nets = st.one_of(
    table(kind="two-layer", m=st.integers(1, 99), sigma_w=scales, sigma_b=scales),
    table(kind="k-class", h=st.integers(1, 99), sigma_w=scales, slope_at_zero=zero_one),
    table(kind="feature-averaging", bias_plus=floats, bias_minus=floats),
    table(kind="feature-decoupling", beta=st.floats(0, 1, exclude_max=True)),
    table(kind="non-robust-multi-class"),
)
trainings = st.one_of(
    table(kind="gradient-descent", eta=positives, steps=st.integers(0, 10**9), record=records),
    table(kind="none", record=records),
)
experiments = table(
    data=clusters(),
    net=nets,
    train=trainings,
    samples=table(train=st.integers(1, 10**6), test=st.integers(1, 10**6)),
    seeds=st.lists(st.integers(0, 2**63 - 1), min_size=1, max_size=5, unique=True),
    dtype=st.sampled_from(["float32", "float64"]),
)


@settings(max_examples=60, deadline=None)
@given(experiments)
def test_a_round_trip_is_exact(plain: dict) -> None:
    experiment = Experiment.parse(plain)
    for text, load in ((experiment.to_json(), json.loads), (experiment.to_toml(), tomllib.loads)):
        back = Experiment.parse(load(text))
        assert back == experiment
        assert back.plain() == experiment.plain()
        assert back.digest() == experiment.digest()
    for name, value in plain["data"].items():
        came = getattr(experiment.data, name)
        assert came == (tuple(value) if isinstance(value, list) else value)


def test_files_are_read_by_their_ending(tmp_path: Path) -> None:
    for name, text in {"a.json": BASE.to_json(), "a.toml": BASE.to_toml()}.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
        assert read(Experiment, tmp_path / name) == BASE


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.json", b"{", "not valid json"),
        ("a.toml", b"= 3", "not valid toml"),
        ("a.json", b"\xff\xfe\xff", "cannot read"),
        ("a.json", b"[1]", "expected a table, got"),
        ("a.json", None, "cannot read"),
        ("a.toml", b" \n", "is empty"),
        ("a.yaml", b"k: 3", "expected a .toml or .json file"),
    ],
)
def test_a_file_that_is_no_spec_says_so(tmp_path: Path, name, content, words: str) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(SpecError, match=words):
        read(Experiment, tmp_path / name)


def test_equal_values_have_equal_digests() -> None:
    assert Clusters(alpha=2).digest() == Clusters(alpha=2.0).digest()
    assert FeatureAveraging(bias_plus=-0.0) == FeatureAveraging(bias_plus=0.0)
    assert FeatureAveraging(bias_plus=-0.0).digest() == FeatureAveraging().digest()
    listed = Experiment.parse(BASE.plain() | {"seeds": [0]})
    assert listed == BASE
    assert listed.digest() == BASE.digest()
    assert TwoLayer(slope_at_zero=True).plain() == TwoLayer(slope_at_zero=1).plain()


def test_using_a_value_does_not_change_it() -> None:
    used, fresh = Clusters(k=4, d=32), Clusters(k=4, d=32)
    _ = used.signs
    assert used == fresh
    assert hash(used) == hash(fresh)
    assert used.plain() == fresh.plain()


def test_a_digest_is_the_same_in_another_process() -> None:
    code = (
        "import sys; from unmix.experiment import Experiment; import json;"
        "print(Experiment.parse(json.load(sys.stdin)).digest())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        input=BASE.to_json(),
        env=os.environ | {"PYTHONHASHSEED": "77"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == BASE.digest()


RECORD = {"record.schedule": "linear", "record.points": 7, "record.coefficients": ["paper"]}
FLOW = {
    "time": 7.0,
    "loss": "exponential",
    "reduction": "sum",
    "tolerance": 0.01,
    "until_loss": 0.1,
    "until_output": 0.1,
    "prune": 0.1,
    "evaluations": 7,
    **RECORD,
}
COARSE = {
    "record.schedule": "log",
    "record.points": 7,
    "record.coefficients": ["paper"],
}
PATCHES = {"eta": 0.2, "steps": 7, "engine": "reference", "snapshots": [7], **COARSE}
EPOCHS = {
    "eta": 0.2,
    "momentum": 0.5,
    "decay": 0.1,
    "epochs": 7,
    "batch": 7,
    "schedule": "drops",
    "drops": [0.3],
    "augment": "crop",
    "precision": "mixed",
    "watch": 7,
    "snapshots": [7],
    **COARSE,
}
SCHEDULE = {
    "growth": 0.1,
    "b_max": 0.5,
    "smoothing": 0.2,
    "smoothing_after": 0.2,
    "decay": 0.1,
    "cubic": "l3",
}
NOISY = {
    "eta": 0.1,
    "steps": 7,
    "batch": 7,
    "opening": 7,
    "opening_eta": 0.1,
    "opening_batch": 7,
    "points": "fixed",
    "noise": "drawn",
    **{f"schedule.{name}": value for name, value in SCHEDULE.items()},
    "radius": 0.3,
    **RECORD,
}
# One other legal value for every field of every spec in an experiment.
CHANGES = {
    "data.clusters": {
        "k": 6,
        "d": 33,
        "alpha": 1.5,
        "sigma": 0.5,
        "positive": [0, 2],
        "negative": [0, 2],
        "cosine": 0.1,
        "sizes": "balanced",
        "weights": [0.1, 0.2, 0.3, 0.4],
        "scale": "unit",
    },
    "net.two-layer": {"m": 4, "sigma_w": 0.1, "sigma_b": 0.1, "slope_at_zero": 0},
    "net.k-class": {
        "h": 4,
        "labels": 2,
        "sigma_w": 0.1,
        "silent": "redraw",
        "slope_at_zero": 0,
    },
    "net.feature-averaging": {"bias_plus": 0.1, "bias_minus": 0.1},
    "net.feature-decoupling": {"beta": 0.1},
    "net.non-robust-multi-class": {},
    "net.prelu": {"p": 2.5, "h": 7, "initial": "balanced", "sigma": 0.1},
    "net.prelu-averaging": {"h": 7, "lam": [1.0, 2.0], "plus": [2], "minus": [2]},
    "net.prelu-subclasses": {"p": 2.5, "h": 7, "groups": [[0], [1], [2], [3]], "lam": [1.0] * 4},
    "train.gradient-descent": {
        "eta": 0.1,
        "steps": 7,
        "engine": "gram",
        "batch": 7,
        "loss": "exponential",
        "reduction": "sum",
        **RECORD,
    },
    "train.none": RECORD,
    "train.flow": FLOW,
    "train.reduced-flow": {"noise": "none", "frequencies": "population", **FLOW},
    "data.features": {
        "dataset": "cifar10",
        "labels": "parity",
        "groups": 5,
        "grouping": 3,
        "split": "validation",
        "held": 70,
        "extractor": "pooled",
        "side": 64,
    },
    "data.images": {
        "dataset": "cifar10",
        "labels": "parity",
        "groups": 5,
        "grouping": 3,
        "split": "validation",
        "held": 70,
        "levels": 256,
        "layout": "planes",
    },
    "net.prelu-classes": {
        "p": 2.5,
        "h": 7,
        "inputs": "unit",
        "fan": "inputs",
        "offset": "none",
    },
    "train.adam": {
        "eta": 0.1,
        "epochs": 7,
        "batch": 7,
        "beta1": 0.5,
        "beta2": 0.5,
        "eps": 0.1,
        "watch": 7,
        "engine": "reference",
        **RECORD,
        "record.points": 9,
    },
    "data.patches": {
        "k": 3,
        "d": 33,
        "patches": 7,
        "robust": 2,
        "alpha": [1.0, 3.0],
        "beta": [0.5, 1.0],
        "sigma_n": 0.2,
        "classes": "balanced",
        "partition": "fixed",
    },
    "net.patch-cnn": {"m": 7, "sigma_0": 0.1, "q": 4.0, "rho": 0.5},
    "net.patch-robust": {"gamma": 7.0, "q": 4.0, "rho": 0.5},
    "net.patch-non-robust": {"gamma": 7.0, "q": 4.0, "rho": 0.5},
    "train.patch-descent": PATCHES,
    "train.patch-adversarial": {
        **PATCHES,
        "attack.step": 7.0,
        "attack.eps": 0.5,
        "attack.objective": "margin",
        "attack.clip": "patch",
        "attack.p": 2.0,
        "attack.reduction": "mean",
        "attack.steps": 7,
        "attack.direction": "sign",
    },
    "train.patch-recursion": {
        "eta": 0.2,
        "steps": 7,
        "step": 7.0,
        "eps": 0.5,
        **COARSE,
    },
    "net.resnet": {"width": 7, "blocks": [1, 1], "stride": 1},
    "net.wide-resnet": {"depth": 16, "widen": 7},
    "train.deep-descent": EPOCHS,
    "train.deep-adversarial": {
        **EPOCHS,
        "attack.eps": 0.5,
        "attack.steps": 7,
        "attack.size": 0.5,
        "attack.start": "point",
        "attack.moments": "batch",
        "attack.warmup": 7,
    },
    "data.sparse-code": {
        "d": 33,
        "D": 31,
        "k": 5.0,
        "p1": 0.5,
        "p2": 0.4,
        "w_low": 0.8,
        "w_high": 1.2,
        "w_seed": 3,
        "basis": "haar",
        "sigma_x": 0.1,
        "sigma_s": 0.1,
        "margin": 0.1,
    },
    "net.code-linear": {},
    "net.code-polynomial": {"q": 7, "scale": 0.2},
    "net.code-tangent": {"m": 7, "b": 0.5, "sigma": 0.2, "sign": "minus"},
    "train.contrast-descent": {
        "eta": 0.1,
        "steps": 7,
        "batch": 7,
        "attack": {"kind": "universal"},
        "tau": 0.3,
        **RECORD,
    },
    "net.symmetric": {"m": 7, "b": 0.1, "c1": 3.0, "initial": "pure", "smoothing": 0.2},
    "train.noisy-descent": NOISY,
    "train.purification": {
        **{f"clean.{name}": value for name, value in NOISY.items()},
        "attack": {"kind": "universal"},
        "tau": 0.3,
        "steps": 7,
        "eta": 0.1,
        "batch": 7,
        "hold": 7,
        "rise": 7,
        "bias": "grows",
        **RECORD,
    },
    "": {"samples.train": 7, "samples.test": 7, "seeds": [1], "dtype": "float32"},
}
PARTS = {"data": "data", "net": "nets", "train": "train"}
ROWS = [
    (f"{place}.{field}", field, value)
    for place, fields in CHANGES.items()
    for field, value in fields.items()
]


def leaves(cls: type[Spec], prefix: str = "") -> set[str]:
    """Dotted names of all fields but `kind`."""
    found = set()
    for name, field in cls.model_fields.items():
        inner = field.annotation
        if isinstance(inner, type) and issubclass(inner, Spec):
            found |= leaves(inner, f"{prefix}{name}.")
        elif name != "kind":
            found.add(prefix + name)
    return found


@pytest.mark.parametrize(("place", "field", "value"), ROWS, ids=[row[0] for row in ROWS])
def test_any_changed_field_changes_the_digest(place: str, field: str, value: object) -> None:
    part, _, kind = place.removesuffix(f".{field}").partition(".")
    start = of_kind(f"{part}.{kind}") if part else BASE
    changed = start.override(f"{part + '.' if part else ''}{field}={json.dumps(value)}")
    assert changed != start
    assert changed.digest() != start.digest()


def of_kind(place: str) -> Experiment:
    """An experiment with a part of that kind ("net.prelu"), all fields at their defaults."""
    part, _, kind = place.partition(".")
    return HOMES.get(place, BASE).override(f"{part}.kind={kind}")


def test_the_changes_cover_every_field() -> None:
    for part, family in PARTS.items():
        for kind in catalog.names(family):
            assert set(CHANGES[f"{part}.{kind}"]) == leaves(catalog.load(family, kind)), kind
    assert set(CHANGES[""]) == leaves(Experiment) - PARTS.keys()


def test_all_kinds_have_different_digests() -> None:
    kinds = [place for place in CHANGES if place]
    digests = {of_kind(kind).digest() for kind in kinds}
    # The kinds that a base is made of are one experiment.
    own = [
        {f"{p}.{getattr(e, p).kind}" for p in PARTS}
        & {kind for kind in kinds if HOMES.get(kind, BASE) is e}
        for e in (BASE, IMAGES, CNN, DEEP, CODED, SIMPLE)
    ]
    assert len(digests) == len(kinds) - sum(len(kinds) - 1 for kinds in own)


def test_an_override_reaches_any_depth() -> None:
    assert BASE.override("data.k=6").data.k == 6
    assert BASE.override("train.record.points=7").train.record.points == 7
    assert BASE.override("dtype=float32").dtype == "float32"
    assert BASE.override("seeds=[3,1]").seeds == (3, 1)
    assert BASE.override("data.positive=[0]").data.minus == (1, 2, 3)
    assert BASE.override("data.positive=[0]").override("data.positive=null") == BASE
    assert BASE.override("net.kind=k-class").override("net.labels=2").net.labels == 2
    assert BASE.override("data.k=4") == BASE


def test_a_switch_of_kind_keeps_common_fields_only() -> None:
    start = BASE.with_("net.sigma_w=0.25", "net.m=9", "net.sigma_b=3.0")
    switched = start.override("net.kind=k-class")
    assert switched.net == KClass(sigma_w=0.25)
    assert switched.override("net.kind=two-layer").net == TwoLayer(sigma_w=0.25)


PLAIN = BASE.plain()
MISSPELT = [
    ("data.kk=3", "'k'"),
    ("data.sigmma=3", "'sigma'"),
    ("net.sigma_ww=1.0", "'sigma_w'"),
    ("train.stepps=3", "'steps'"),
    ("train.record.point=3", "'points'"),
    ("sample.train=3", "'samples'"),
    ("samples.trian=3", "'train'"),
    ("net.kind=twolayer", "'two-layer'"),
    ("net.kind=kclass", "'k-class'"),
    ("train.kind=gradient-decent", "'gradient-descent'"),
    ("data.kind=cluster", "'clusters'"),
]


@pytest.mark.parametrize(("assignment", "meant"), MISSPELT)
def test_a_wrong_name_is_answered_with_the_right_one(assignment: str, meant: str) -> None:
    with pytest.raises(SpecError) as caught:
        BASE.override(assignment)
    assert caught.value.hint.startswith("did you mean")
    assert meant in caught.value.hint
    assert assignment.split("=")[0] in caught.value.message


def test_wrong_names_are_caught_in_files_and_constructors() -> None:
    with pytest.raises(SpecError, match=r"train\.record\.pionts.*\n.*'points'"):
        Experiment.parse(PLAIN | {"train": {"kind": "none", "record": {"pionts": 3}}})
    with pytest.raises(SpecError, match=r"'clusters' has no field 'aplha'\n.*'alpha'"):
        Clusters(aplha=2.0)
    with pytest.raises(
        SpecError, match=r"net\.kind: there is no nets entry 'tow-layer'\n.*two-layer"
    ):
        Experiment.parse(PLAIN | {"net": {"kind": "tow-layer"}})


WRONG = {
    "data.k": ["4", 4.5, 1, True, float("nan"), None, [4]],
    "data.d": ["32", 32.5, -1],
    "data.alpha": ["1", 0, -1.0, float("nan"), float("inf"), -float("inf"), True, 10**400],
    "data.sigma": [-0.5, float("nan")],
    "data.cosine": [1.0, float("nan")],
    "data.sizes": ["equal"],
    "data.scale": ["sqrt"],
    "data.positive": [3, ["0"], [0.5]],
    "data.weights": [["a"], [float("nan")] * 4, 3],
    "net.m": ["5", 0, 2.5],
    "net.sigma_w": [-1.0, float("inf"), "1e-5"],
    "net.slope_at_zero": [2, 0.5, "0"],
    "train.eta": [0.0, -1.0, "0.1", float("inf")],
    "train.steps": [-1, 1.5, "100"],
    "train.engine": ["fast"],
    "train.record": [3],
    "train.record.points": [1, "40"],
    "train.record.coefficients": [["papers"], "paper"],
    "samples": [3, [1, 2]],
    "samples.train": [0, "10", 1.5],
    "seeds": [3, "ab", [], [1, 1], [-1], [0.5], ["0"], [True]],
    "dtype": ["float16", 64],
    "net": [3, "two-layer", {}, {"m": 3}],
    "net.kind": [[1], 3, None, {}],
}
WRONG_ROWS = [(path, value) for path, values in WRONG.items() for value in values]


@pytest.mark.parametrize(("path", "value"), WRONG_ROWS)
def test_a_wrong_value_is_refused_at_its_path(path: str, value: object) -> None:
    plain = json.loads(BASE.to_json())
    *folders, last = path.split(".")
    table = plain
    for folder in folders:
        table = table[folder]
    table[last] = value
    with pytest.raises(SpecError, match="^" + re.escape(path)):
        Experiment.parse(plain)


@pytest.mark.parametrize("text", ["NaN", "Infinity", "-Infinity"])
def test_no_way_in_for_numbers_that_are_none(text: str) -> None:
    with pytest.raises(SpecError, match=r"data\.alpha: Input should be a"):
        BASE.override(f"data.alpha={text}")


@pytest.mark.parametrize(
    ("assignment", "words"),
    [
        ("data.k", "expected name=value"),
        ("=3", "expected name=value"),
        ("", "expected name=value"),
        ("data.k.x=3", "'k' is a value, it has no field 'x'"),
        ("data..k=3", "has no field ''"),
        ("data=4", "data: expected a table with a 'kind'"),
    ],
)
def test_an_assignment_that_cannot_be_followed_is_explained(assignment: str, words: str) -> None:
    with pytest.raises(SpecError, match=re.escape(words)):
        BASE.override(assignment)


def test_all_wrong_values_are_told_at_once() -> None:
    with pytest.raises(SpecError) as caught:
        Experiment.parse(PLAIN | {"samples": {"train": 0, "test": "3"}})
    assert "samples.train: " in caught.value.message
    assert "samples.test: " in caught.value.message


def test_a_constructor_takes_only_members_of_the_family() -> None:
    with pytest.raises(SpecError, match="net: 'clusters' is none of the nets"):
        Experiment(data=Clusters(), net=Clusters(), train=NoTraining())
    with pytest.raises(SpecError, match="train: Samples is none of the train"):
        Experiment(data=Clusters(), net=TwoLayer(), train=Samples())
    with pytest.raises(SpecError, match="data: expected a table"):
        Experiment(data=3, net=TwoLayer(), train=NoTraining())
    tabled = Experiment(
        data=Clusters(k=4, d=32), net={"kind": "two-layer"}, train=GradientDescent()
    )
    assert tabled == BASE
    with pytest.raises(SpecError, match="net: Field required"):
        Experiment(data=Clusters(), train=NoTraining())


def test_values_are_frozen() -> None:
    for value, name in ((BASE, "seeds"), (BASE.data, "k"), (BASE.train.record, "points")):
        with pytest.raises(ValidationError, match="frozen"):
            setattr(value, name, getattr(value, name))


def test_the_schema_names_every_kind_and_resolves() -> None:
    document = json.loads(json.dumps(schema(Experiment)))
    for part, family in {"data": "data", "net": "nets", "train": "train"}.items():
        options = document["properties"][part]["anyOf"]
        kinds = [option["properties"]["kind"]["const"] for option in options]
        assert kinds == catalog.names(family)
        for option, kind in zip(options, kinds, strict=True):
            assert set(option["properties"]) == set(catalog.load(family, kind).model_fields)
            assert option["additionalProperties"] is False
    references = re.findall(r'"\$ref": "#/\$defs/(\w+)"', json.dumps(document))
    assert {"Samples", "Record"} <= set(references)
    assert set(references) <= set(document["$defs"])
    assert set(document["required"]) == {"data", "net", "train"}
