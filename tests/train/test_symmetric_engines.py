"""The symmetric net's engine takes the steps of autograd, and autograd those of the formulas.

Relative tolerances over 200 steps: with reach 9, with hard thresholds and with drawn noise, 1e-10
in float64; with the default reach, 1e-6 (measured: 1e-7 in the weights, 4e-7 in the gradients by
the input). In float32, 1e-4.
"""

from __future__ import annotations

import math
from functools import cache

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from unmix.data.sparse_code import SparseCode
from unmix.data.sparse_rows import SparseRows
from unmix.train.engines import active_cpu, symmetric
from unmix.train.engines.active import Active
from unmix.train.engines.active_cpu import ActiveCpu
from unmix.train.engines.symmetric import Schedule, SymmetricGemm
from unmix.train.engines.symmetric_reference import SymmetricReference

CODE = SparseCode(d=20, k=4.0)
ETA, M, B = 0.3, 40, 30
SCHEDULES = {
    "smooth": Schedule(b_max=0.3, growth=3.0, decay=0.01),
    "hard": Schedule(b_max=0.3, growth=3.0, decay=0.01, smoothing=0.0, smoothing_after=0.0),
    "wide noise": Schedule(growth=0.0, smoothing_after=0.5, decay=0.01),
    "printed cubes": Schedule(b_max=0.3, growth=3.0, decay=0.01, cubic="l3"),
    "no decay": Schedule(b_max=0.3, growth=3.0),
}


def start(seed: int = 0, b: tuple[float, ...] = (0.15, 0.1), scale: float = 0.1) -> dict:
    made = torch.Generator().manual_seed(seed)
    w = scale * torch.randn(len(b), M, CODE.d, generator=made, dtype=torch.float64)
    return {"w": w, "b": torch.tensor(b, dtype=torch.float64)}


@cache
def points(step: int, kind: str, replicas: int = 2, dtype=torch.float64):
    """Fresh points of a step: sparse, or dense with noise."""
    z, y = CODE.codes(tuple(range(replicas)), B, f"step.{step}", dtype)
    made = torch.Generator().manual_seed(step)
    noise = 0.05 * torch.randn(replicas, B, CODE.d, generator=made, dtype=torch.float64)
    return (z if kind == "sparse" else z.dense() + noise.to(dtype)), y


def drawn(step: int, sigma: float, replicas: int = 2) -> torch.Tensor:
    made = torch.Generator().manual_seed(1000 + step)
    return sigma * torch.randn(replicas, B, M, generator=made, dtype=torch.float64)


def walk(engine, kind: str, steps: int, sigma: float | None = None, first: int = 0):
    for step in range(first, first + steps):
        x, y = points(step, kind, len(engine.w), engine.w.dtype)
        rho = None if sigma is None else drawn(step, sigma, len(engine.w)).to(engine.w)
        engine.step(x, y, ETA, rho)
    return engine


def apart(one: torch.Tensor, other: torch.Tensor) -> float:
    return float((one.double() - other).abs().max()) / (float(other.abs().max()) or 1.0)


def assert_same(mine, wanted, kind: str, tolerance: float) -> None:
    assert apart(mine.params()["w"], wanted.params()["w"]) < tolerance
    assert torch.equal(mine.params()["b"], wanted.params()["b"])
    x, _ = points(999, kind, len(mine.w))
    assert apart(mine.outputs(x), wanted.outputs(x)) < tolerance
    assert apart(mine.input_gradient(x), wanted.input_gradient(x)) < tolerance


@pytest.mark.parametrize("kind", ["sparse", "dense"])
@pytest.mark.parametrize("label", SCHEDULES)
def test_the_engine_equals_autograd(label: str, kind: str) -> None:
    schedule = SCHEDULES[label]
    wanted = walk(SymmetricReference(start(), schedule), kind, 200)
    assert apart(wanted.w, start()["w"]) > 0.5, "training must go somewhere"
    exact = walk(SymmetricGemm(start(), schedule, reach=9.0), kind, 200)
    assert_same(exact, wanted, kind, 1e-10)
    assert_same(walk(SymmetricGemm(start(), schedule), kind, 200), wanted, kind, 1e-6)


@pytest.mark.parametrize("sigma", [0.02, 0.2], ids=["one branch", "both branches"])
@pytest.mark.parametrize("kind", ["sparse", "dense"])
def test_drawn_noise_equals_autograd(kind: str, sigma: float) -> None:
    schedule = SCHEDULES["smooth"]
    wanted, mine = (
        walk(cls(start(), schedule), kind, 200, sigma)
        for cls in (SymmetricReference, SymmetricGemm)
    )
    assert apart(mine.w, wanted.w) < 1e-10
    x, rho = points(999, kind)[0], drawn(999, sigma)
    assert apart(mine.outputs(x, rho), wanted.outputs(x, rho)) < 1e-10


@pytest.mark.parametrize("kind", ["sparse", "dense"])
@pytest.mark.parametrize("label", ["smooth", "hard"])
def test_single_precision_follows(label: str, kind: str) -> None:
    wanted = walk(SymmetricReference(start(), SCHEDULES[label]), kind, 200)
    single = {"w": start()["w"].float(), "b": start()["b"]}
    mine = walk(SymmetricGemm(single, SCHEDULES[label]), kind, 200)
    assert mine.w.dtype == torch.float32
    assert apart(mine.w, wanted.w) < 1e-4


@settings(max_examples=25, deadline=None)
@given(
    n=st.integers(1, 9), m=st.integers(1, 150), d=st.integers(2, 9), seed=st.integers(0, 99),
    bias=st.sampled_from([0.0, 0.1, 1.0, 5.0]), sigma=st.sampled_from([0.0, 0.1, 0.3, 1.0]),
)  # fmt: skip
def test_one_step_of_any_shape_is_that_of_autograd(n, m, d, seed, bias, sigma) -> None:
    made = torch.Generator().manual_seed(seed)
    x = torch.randn(1, n, d, generator=made).double()
    x[torch.rand(x.shape, generator=made) < 0.5] = 0
    x[:, 1::2] = x[:, : n // 2 * 2 : 2]
    y = torch.randn(1, n, generator=made).sign().double()
    w = torch.randn(1, m, d, generator=made).double()
    begin = {"w": w, "b": torch.tensor([bias]).double()}
    schedule = Schedule(growth=1.0, smoothing=sigma, decay=0.1)
    wanted = SymmetricReference(begin, schedule)
    wanted.step(x, y, 0.5)
    for given_x in (x, as_rows(x)):
        mine = SymmetricGemm(begin, schedule, reach=9.0)
        g = mine.input_gradient(given_x) - SymmetricReference(begin, schedule).input_gradient(x)
        assert float(g.abs().max()) < 1e-12 * m
        mine.step(given_x, y, 0.5)
        torch.testing.assert_close(mine.w, wanted.w, rtol=1e-12, atol=1e-12)


def as_rows(x: torch.Tensor) -> SparseRows:
    flat = x.flatten(0, 1)
    places = flat.nonzero()
    counts = torch.bincount(places[:, 0], minlength=len(flat))
    offsets = torch.cat([torch.zeros(1, dtype=torch.int64), counts.cumsum(0)])
    return SparseRows(offsets, places[:, 1], flat[flat != 0], x.shape[0], x.shape[2])


@pytest.mark.parametrize("cls", [SymmetricReference, SymmetricGemm])
def test_the_dead_only_decay(cls) -> None:
    begin = start(b=(1e6, 1e6))
    schedule = Schedule(growth=0.0, smoothing_after=0.1, decay=0.01)
    engine = walk(cls(begin, schedule), "sparse", 1)
    norm = begin["w"].norm(dim=-1, keepdim=True)
    wanted = begin["w"] * (1 - ETA * 0.01 * (1 + norm))
    torch.testing.assert_close(engine.w, wanted, rtol=1e-13, atol=0)
    # The two-sided formula of the reference cancels large terms.
    assert engine.outputs(points(0, "sparse")[0]).abs().max() < 1e-18


@pytest.mark.parametrize("cls", [SymmetricReference, SymmetricGemm])
def test_zero_weights_are_legal(cls) -> None:
    zero = {"w": torch.zeros(1, M, CODE.d).double(), "b": torch.tensor([0.1]).double()}
    engine = walk(cls(zero, SCHEDULES["smooth"]), "dense", 3)
    assert torch.isfinite(engine.w).all()


@pytest.mark.parametrize("cls", [SymmetricReference, SymmetricGemm])
def test_a_hard_threshold_is_on_at_the_threshold(cls) -> None:
    schedule = Schedule(growth=0.0, smoothing_after=0.0)
    w = torch.tensor([[[0.5, 0.0], [0.0, 1.0]]]).double()
    x = torch.tensor([[[1.0, 0.0], [-1.0, 0.25], [0.0, -3.0]]]).double()
    engine = cls({"w": w, "b": torch.tensor([0.5]).double()}, schedule)
    assert engine.outputs(x).tolist() == [[0.0, 0.0, -2.5]]
    slopes = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]).double()
    assert torch.equal(engine.input_gradient(x)[0], slopes @ w[0])
    linear = cls({"w": w, "b": torch.tensor([0.0]).double()}, schedule)
    assert torch.equal(linear.input_gradient(0 * x)[0], (torch.ones(3, 2).double() @ w[0]))


@pytest.mark.parametrize("cls", [SymmetricReference, SymmetricGemm])
@pytest.mark.parametrize("kind", ["sparse", "dense"])
def test_replicas_share_nothing(cls, kind: str) -> None:
    together = walk(cls(start(), SCHEDULES["smooth"]), kind, 30)
    for r in range(2):
        alone = cls({name: p[r : r + 1] for name, p in start().items()}, SCHEDULES["smooth"])
        for step in range(30):
            x, y = points(step, kind)
            mine = x.one(r) if isinstance(x, SparseRows) else x[r : r + 1]
            alone.step(mine, y[r : r + 1], ETA)
        assert apart(alone.w[0], together.w[r]) < 1e-12
        assert alone.b[0] == together.b[r]


@pytest.mark.parametrize("cls", [SymmetricReference, SymmetricGemm])
@pytest.mark.parametrize("kind", ["sparse", "dense"])
def test_a_restored_engine_goes_on_bit_for_bit(cls, kind: str) -> None:
    schedule = SCHEDULES["smooth"]
    engine = walk(cls(start(), schedule), kind, 7)
    saved = {name: t.clone() for name, t in engine.state().items()}
    kept = {name: t.clone() for name, t in saved.items()}
    walk(engine, kind, 13, first=7)
    resumed = cls(start(seed=5), schedule)
    resumed.restore(saved)
    walk(resumed, kind, 13, first=7)
    for name, p in resumed.params().items():
        assert torch.equal(p, engine.params()[name])
        assert torch.equal(saved[name], kept[name])


@pytest.mark.parametrize("cls", [SymmetricReference, SymmetricGemm])
def test_an_engine_leaves_its_input_alone(cls) -> None:
    begin, (x, y) = start(), points(0, "dense")
    before = [t.clone() for t in (*begin.values(), x, y)]
    engine = cls(begin, SCHEDULES["smooth"])
    given_out = engine.params()["w"]
    kept = given_out.clone()
    engine.step(x, y, ETA)
    engine.input_gradient(x)
    now = [*begin.values(), x, y]
    assert all(torch.equal(a, b) for a, b in zip(before, now, strict=True))
    assert torch.equal(given_out, kept)


def test_the_bias_follows_its_schedule() -> None:
    schedule = Schedule(b_max=0.2, growth=2.0, smoothing=0.15, smoothing_after=0.1)
    b = torch.tensor([0.1, 0.195, 0.5]).double()
    grown = schedule.grown(b, 0.3, 20)
    torch.testing.assert_close(grown, torch.tensor([0.13, 0.2, 0.5]).double())
    assert [schedule.sigma(v) for v in (0.1, 0.2, 0.5)] == pytest.approx([0.015, 0.02, 0.05])
    still = Schedule(growth=0.0)
    assert torch.equal(still.grown(b, 0.3, 20), b)
    assert still.sigma(0.1) == pytest.approx(0.01)


def test_the_closed_form_is_the_mean_over_the_noise() -> None:
    begin, schedule = start(b=(0.15,)), Schedule(growth=0.0, smoothing_after=0.4)
    engine = SymmetricReference(begin, schedule)
    x, _ = points(0, "dense", 1)
    draws = torch.stack([
        engine.outputs(x, drawn(seed, 0.4 * 0.15, 1)) for seed in range(2000)
    ])  # fmt: skip
    error = draws.std(0) / math.sqrt(2000)
    assert ((draws.mean(0) - engine.outputs(x)).abs() < 5 * error).all()


def test_the_reference_steps_along_finite_differences() -> None:
    begin, schedule = start(b=(0.15,)), Schedule(growth=0.0, smoothing_after=0.4, decay=0.03)
    x, y = points(0, "dense", 1)
    moved = SymmetricReference(begin, schedule)
    moved.step(x, y, ETA)
    gradient = (begin["w"] - moved.w) / ETA
    made = torch.Generator().manual_seed(0)
    direction = torch.randn(begin["w"].shape, generator=made, dtype=torch.float64)

    def objective(h: float) -> float:
        w = begin["w"] + h * direction
        f = SymmetricReference({"w": w, "b": begin["b"]}, schedule).outputs(x)
        norm = w.norm(dim=-1)
        penalty = (norm**2 / 2 + norm**3 / 3).sum()
        return float(torch.log1p(torch.exp(-y * f)).mean() + 0.03 * penalty)

    slope = (objective(1e-6) - objective(-1e-6)) / 2e-6
    assert float((gradient * direction).sum()) == pytest.approx(slope, rel=1e-6)


KERNELS = (Active(), ActiveCpu())


@settings(max_examples=40, deadline=None)
@given(
    n=st.integers(1, 6), m=st.integers(1, 300), d=st.integers(1, 40), seed=st.integers(0, 99),
    edge=st.sampled_from([-1.0, 0.0, 0.5, 2.0, 1e9]),
    dtype=st.sampled_from([torch.float32, torch.float64]),
)  # fmt: skip
def test_both_kernels_find_the_same_entries(n, m, d, seed, edge, dtype) -> None:
    made = torch.Generator().manual_seed(seed)
    x = torch.randn(1, n, d, generator=made).to(dtype)
    x[torch.rand(x.shape, generator=made) < 0.5] = 0
    w = torch.randn(m, d, generator=made).to(dtype)
    s = x[0] @ w.T
    tight = 1e-12 if dtype == torch.float64 else 1e-4
    for kernels in KERNELS:
        for found in (kernels.sparse_select(as_rows(x), w, edge), kernels.dense_select(s, edge)):
            point, neuron, value = (part.clone() for part in found)
            torch.testing.assert_close(value, s[point, neuron], rtol=tight, atol=tight)
            on = torch.zeros(n, m, dtype=torch.bool)
            on[point, neuron] = True
            assert int(on.sum()) == len(point)
            # Rounding may switch an entry at the edge itself.
            assert ((on == (s.abs() >= edge)) | ((s.abs() - edge).abs() < tight)).all()
            out, dense = torch.zeros(m, d, dtype=dtype), torch.zeros(n, d, dtype=dtype)
            kernels.sparse_scatter(out, as_rows(x), point, neuron, value)
            kernels.dense_scatter(dense, w, point, neuron, value)
            active = torch.zeros(n, m, dtype=dtype)
            active[point, neuron] = value
            torch.testing.assert_close(out, active.T @ x[0], rtol=tight, atol=30 * tight)
            torch.testing.assert_close(dense, active @ w, rtol=tight, atol=300 * tight)


@pytest.mark.parametrize("kernels", KERNELS, ids=["torch", "compiled"])
def test_a_product_that_is_no_number_is_not_hidden(kernels) -> None:
    s = torch.tensor([[0.1, torch.nan, 3.0]])
    point, neuron, _ = kernels.dense_select(s, 1.0)
    assert neuron.tolist() == [1, 2]
    assert point.tolist() == [0, 0]
    w = torch.tensor([[0.1], [torch.nan], [3.0]])
    assert kernels.sparse_select(as_rows(torch.ones(1, 1, 1)), w, 1.0)[1].tolist() == [1, 2]


@pytest.mark.parametrize("kind", ["sparse", "dense"])
def test_the_plain_kernels_train_the_same(kind: str) -> None:
    compiled = SymmetricGemm(start(), SCHEDULES["smooth"])
    plain = SymmetricGemm(start(), SCHEDULES["smooth"])
    plain.kernels = Active()
    assert isinstance(compiled.kernels, ActiveCpu)
    assert apart(walk(plain, kind, 50).w, walk(compiled, kind, 50).w) < 1e-12


@pytest.mark.parametrize("kind", ["sparse", "dense"])
def test_the_same_training_gives_the_same_bits(kind: str) -> None:
    one, other = (walk(SymmetricGemm(start(), SCHEDULES["smooth"]), kind, 20) for _ in range(2))
    assert torch.equal(one.w, other.w)


@pytest.mark.parametrize("crowded", [0.0, 1.1], ids=["rows", "entries"])
def test_entries_add_up_the_same_however_many(crowded: float, monkeypatch) -> None:
    plain = SymmetricGemm(start(), SCHEDULES["wide noise"])
    plain.kernels = Active()
    monkeypatch.setattr(active_cpu, "CROWDED", crowded)
    mine = walk(SymmetricGemm(start(), SCHEDULES["wide noise"]), "sparse", 30)
    assert apart(mine.w, walk(plain, "sparse", 30).w) < 1e-12


@pytest.mark.parametrize("share", [0.0, 1.1], ids=["dense products", "entries"])
def test_dense_products_and_entries_give_the_same(share: float, monkeypatch) -> None:
    wanted = walk(SymmetricReference(start(), SCHEDULES["smooth"]), "dense", 50)
    monkeypatch.setattr(symmetric, "DENSE", share)
    mine = walk(SymmetricGemm(start(), SCHEDULES["smooth"], reach=9.0), "dense", 50)
    assert_same(mine, wanted, "dense", 1e-10)
