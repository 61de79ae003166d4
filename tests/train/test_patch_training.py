"""Training of patch CNNs as experiments: engines, records, resumption, several ascent steps."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lab import patched, unchecked_shapes
from small_runs import assert_same
from unmix.data.patches import Patches
from unmix.errors import SpecError
from unmix.experiment import Supervisor, run
from unmix.nets.activations import SmoothedRelu
from unmix.probes.base import probe
from unmix.probes.patch_recursions import recursion
from unmix.streams import normals
from unmix.train.engines.patch_ascent import Ascent, AscentGemm, AscentReference, engine_for
from unmix.train.engines.patches import OneStep, PatchGemm
from unmix.train.patches import columns_of

ADVERSARIAL = ("train.kind=patch-adversarial", "train.attack.step=5.0", "train.attack.eps=0.5")
SEVERAL = (*ADVERSARIAL, "train.attack.steps=3")


@pytest.mark.parametrize("changes", [(), ADVERSARIAL, SEVERAL], ids=["std", "one step", "several"])
def test_both_engines_train_alike(changes: tuple) -> None:
    # Sums over points and filters are taken in another order: 1e-11 after 20 steps.
    mine, plain = patched(*changes), patched(*changes, "train.engine=reference")
    torch.testing.assert_close(mine.params["w"], plain.params["w"], rtol=1e-9, atol=1e-11)
    for name in columns_of(3):
        one, other = mine.trace.columns[name], plain.trace.columns[name]
        torch.testing.assert_close(one, other, rtol=1e-8, atol=1e-11, msg=name)


@settings(max_examples=15, deadline=None)
@given(
    st.integers(1, 4),
    st.sampled_from(["Fy", "margin"]),
    st.sampled_from(["coord", "patch", "input"]),
    st.sampled_from(["raw", "sign"]),
    st.sampled_from(["sum", "mean"]),
)
def test_several_steps_are_autograds(steps, objective, clip, direction, reduction) -> None:
    p = "inf" if clip == "coord" else 2.0
    step = 0.2 if direction == "sign" else 4.0
    attack = Ascent(
        step=step, eps=0.7, objective=objective, clip=clip, p=p, reduction=reduction,
        steps=steps, direction=direction,
    )  # fmt: skip
    batch = Patches(k=3, d=8, patches=3).sample((0, 1), 7, "train")
    w = normals((0, 1), "w", (3, 4, 8), torch.float64) * 0.5
    start = ({"w": w}, batch.x, batch.y, SmoothedRelu(), 0.1)
    with unchecked_shapes():
        mine, plain = (cls(*start, attack) for cls in (AscentGemm, AscentReference))
        torch.testing.assert_close(mine.attacked(), plain.attacked(), rtol=1e-9, atol=1e-12)
        torch.testing.assert_close(mine.attacked_outputs(), plain.attacked_outputs())


def test_one_raw_step_is_the_papers_engine_and_the_same_attack() -> None:
    batch = Patches(k=3, d=8, patches=3).sample((0, 1), 7, "train")
    w = normals((0, 1), "w", (3, 4, 8), torch.float64) * 0.5
    attack = Ascent(step=4.0, eps=0.7, objective="margin")
    fast = engine_for("gemm", {"w": w}, batch.x, batch.y, SmoothedRelu(), 0.1, attack)
    assert type(fast) is PatchGemm
    slow = AscentGemm({"w": w}, batch.x, batch.y, SmoothedRelu(), 0.1, attack)
    torch.testing.assert_close(fast.attacked(), slow.attacked(), rtol=1e-12, atol=1e-13)
    torch.testing.assert_close(
        fast.attacked_outputs(), slow.attacked_outputs(), rtol=1e-11, atol=1e-13
    )


@pytest.mark.parametrize("p", [2.0, 3.0, "inf"])
@pytest.mark.parametrize("clip", ["patch", "input"])
def test_a_clip_shrinks_to_its_ball(p, clip: str) -> None:
    move = 3 * normals((0,), "m", (5, 4, 6), torch.float64)[0]
    move[0] *= 1e-3
    found = OneStep(eps=1.5, clip=clip, p=p).clipped(move.clone(), 4)
    axes = -1 if clip == "patch" else (-2, -1)
    before, after = (torch.linalg.vector_norm(m, float(p), axes) for m in (move, found))
    torch.testing.assert_close(after, before.clamp_max(1.5))
    torch.testing.assert_close(found[0], move[0])
    cosine = torch.cosine_similarity(found.flatten(1), move.flatten(1))
    if clip == "input":
        torch.testing.assert_close(cosine, torch.ones(5).double())


def test_a_finite_norm_needs_a_ball() -> None:
    with pytest.raises(SpecError, match="clip=patch or clip=input"):
        OneStep(p=2.0)
    with pytest.raises(SpecError, match="p >= 1"):
        OneStep(p=0.5, clip="patch")


def test_records_and_snapshots_are_those_of_the_steps() -> None:
    whole = patched("train.snapshots=[0,10,20]")
    assert list(whole.trace.final) == ["w.0", "w.10", "w.20"]
    assert torch.equal(whole.trace.final["w.0"], whole.initial["w"])
    assert torch.equal(whole.trace.final["w.20"], whole.params["w"])
    half = patched("train.steps=10", "train.record.points=11")
    assert torch.equal(whole.trace.final["w.10"], half.params["w"])
    now = dict(zip(whole.trace.steps, range(99), strict=False))
    w = whole.params["w"]
    for i in range(3):
        last = {name: whole.trace.columns[f"{name}{i + 1}"][:, now[20]] for name in "AB"}
        assert torch.equal(last["A"], w[:, i, :, i].amax(1))
        assert torch.equal(last["B"], w[:, i, :, 3 + i].amax(1))
    other = torch.stack([w[:, i, :, j] for i in range(3) for j in range(3) if i != j])
    assert torch.equal(whole.trace.columns["C"][:, -1], other.amax((0, 2)))


def test_a_standard_training_sees_what_it_trains_on() -> None:
    trace = patched().trace
    for name in ("loss", "accuracy"):
        assert torch.equal(trace.columns[name], trace.columns[f"clean_{name}"])
    harder = patched(*ADVERSARIAL).trace.columns
    assert (harder["loss"] >= harder["clean_loss"]).all()


def test_it_goes_on_from_a_checkpoint_bit_for_bit() -> None:
    whole = patched(*ADVERSARIAL, "train.snapshots=[4,16]")
    states = {}

    def save(part: str, state) -> None:
        if state.step == 9:
            states[part] = state

    keen = Supervisor(wants_checkpoint=lambda: True, save=save)
    run(whole.experiment, supervisor=keen)
    assert_same(whole, run(whole.experiment, supervisor=Supervisor(load=states.get)))


def test_a_replica_that_blows_up_is_put_back_and_named() -> None:
    calm = patched("seeds=[1]")
    torn = patched("train.eta=1e9")
    assert torn.trace.diverged == (0, 1)
    assert all("lower train.eta" in stop.advice for stop in torn.trace.stops)
    assert torn.params["w"].isfinite().all()
    assert all(len(c[0]) == len(torn.trace.steps) for c in torn.trace.columns.values())
    assert calm.trace.diverged == ()


def test_the_recursion_of_all_coefficients_is_training_without_noise() -> None:
    # Lemma D.4: exact, so what is left is rounding over 300 steps.
    quiet = patched("data.sigma_n=0.0", "train.steps=300")
    found = probe(quiet, "patch-recursions")
    for name in "ABCD":
        assert float(found[name].max()) < 1e-12, name
    noisy = probe(patched("train.steps=300"), "patch-recursions")
    assert float(noisy["B"].min()) > 1e-6


def test_the_recursion_of_two_coefficients_is_that_of_one_class_alone() -> None:
    """Against the same formulas, one scalar at a time."""
    changes = ("train.kind=patch-recursion", "train.step=3.0", "train.eps=0.4", "train.steps=40")
    found = patched(*changes, "net.m=2", "seeds=[4]")
    w, s = found.initial["w"][0], SmoothedRelu()
    for i in range(3):
        a, b = w[i, :, i].clone(), w[i, :, 3 + i].clone()
        for _ in range(40):
            da, db = (
                min(0.4, max(-0.4, float(3 * (s.slope(size * c) * c).sum())))
                for size, c in ((2.0, a), (1.0, b))
            )
            f = s.value((2 - da) * a).sum() + 4 * s.value((1 - db) * b).sum()
            g = 0.1 / 3 * 2 / (f.exp() + 2)
            a, b = (
                a + g * s.slope((2 - da) * a) * (2 - da),
                b + 4 * g * s.slope((1 - db) * b) * (1 - db),
            )
        torch.testing.assert_close(found.params["w"][0, i, :, i], a, rtol=1e-12, atol=0)
        torch.testing.assert_close(found.params["w"][0, i, :, 3 + i], b, rtol=1e-12, atol=0)
    off = found.params["w"][0, 0, :, 1]
    assert torch.equal(off, w[0, :, 1])


def test_the_recursion_goes_on_from_a_checkpoint() -> None:
    whole = patched("train.kind=patch-recursion", "train.step=3.0")
    states = {}
    keen = Supervisor(
        wants_checkpoint=lambda: True,
        save=lambda part, state: states.update({part: replace(state)}) if state.step == 7 else None,
    )
    run(whole.experiment, supervisor=keen)
    assert_same(whole, run(whole.experiment, supervisor=Supervisor(load=states.get)))


def test_the_recursion_sees_classes_as_often_as_the_sample_has_them() -> None:
    quiet = patched("data.sigma_n=0.0")
    data, w = quiet.data, quiet.initial["w"]
    u, v = (w @ part.T for part in data.axes())
    even = torch.full((2, 3), 1 / 3, dtype=torch.float64)
    found = recursion(quiet, u, v, even, quiet.experiment.train)[0]
    assert not torch.allclose(found, quiet.params["w"] @ data.axes()[0].T)
    balanced = patched("data.sigma_n=0.0", "data.classes=balanced")
    found = recursion(balanced, u, v, even, balanced.experiment.train)[0]
    torch.testing.assert_close(found, balanced.params["w"] @ data.axes()[0].T)
