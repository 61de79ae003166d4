"""Measures of the feature-averaging paper on toys, against loops and formulas written again."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
import torch

from lab import put, still
from small_runs import small
from unmix.claims import Sample
from unmix.data.clusters import Clusters
from unmix.experiment import run as train
from unmix.nets.constructed import FeatureAveraging
from unmix.nets.two_layer import TwoLayer
from unmix.papers.averaging import predict
from unmix.papers.averaging.measures import laws, learned, robustness, start, trends
from unmix.papers.base import Evidence, Setting, Source
from unmix.papers.brackets import bracket


@pytest.fixture
def near(evidence: Evidence):
    """Compare a measure's values on a setting with one wanted number a replica."""

    def check(measure, settings: tuple, wanted: list, rel: float = 1e-9) -> Sample:
        sample = measure(evidence, *settings)
        assert list(sample.values) == pytest.approx([float(w) for w in wanted], rel=rel, abs=1e-12)
        assert sample.failed_premises == ()
        return sample

    return check


def parts(evidence: Evidence, setting: str, name: str) -> list[np.ndarray]:
    """A probe's array, a numpy array a replica."""
    return [row.numpy() for row in evidence.probe(setting, name.split(".")[0])[name.split(".")[1]]]


def own_pairs(evidence: Evidence, setting: str, r: int) -> list[tuple[int, int]]:
    """(neuron, point) of one label (binary: two halves) or class (k-class, h = 1)."""
    run = evidence.run(setting)
    y, c = run.train_batch.y[r], run.train_batch.cluster[r].tolist()
    m = run.params["w"].shape[1]
    if run.model.class_signs is None:
        return [(w, i) for w in range(m) for i in range(len(c)) if (w < m // 2) == (y[i] > 0)]
    return [(c[i], i) for i in range(len(c))]


def test_the_averaging_index_is_one_for_averages(evidence: Evidence, near) -> None:
    for cosine in (0.0, 0.3):
        data = Clusters(k=4, d=32, cosine=cosine)
        run = still(TwoLayer(m=2), data, seeds=(0, 1))
        sides = [run.centres[:, list(s)].sum(1) for s in (data.plus, data.minus)]
        w = torch.stack([sides[0], sides[0], sides[1], sides[1]], 1)
        made = Evidence({}, {}, evidence.source, runs={"x": put(run, w=w, b=torch.zeros(2, 4))})
        assert learned.averaging_index(made, "x").values == pytest.approx([1.0, 1.0])
    index = [v / (1 / math.sqrt(5)) for v in evidence.probe("binary", "cosines")["on"]]
    near(learned.averaging_index, ("binary",), index)


def test_cosines_of_own_and_others_are_told_apart(evidence: Evidence, near) -> None:
    wanted = []
    for matrix in evidence.probe("k-class", "cosines")["matrix"]:
        on = matrix.diagonal()
        wanted.append(on.min() - matrix[~torch.eye(10, dtype=torch.bool)].max())
    near(learned.own_minus_off, ("k-class",), wanted)


def test_growth_is_a_slope_in_log_time(evidence: Evidence) -> None:
    run = evidence.run("binary-long")
    steps = np.array(run.trace.steps)
    late = steps >= steps[-1] / 3
    margin = torch.from_numpy(np.where(steps > 0, 0.3 + 2.5 * np.log(np.maximum(steps, 1)), 0.0))
    columns = run.trace.columns | {"margin": margin.repeat(2, 1)}
    trace = dataclasses.replace(run.trace, columns=columns)
    made = Evidence({}, {}, evidence.source, runs={"x": dataclasses.replace(run, trace=trace)})
    assert late.sum() > 3
    assert learned.log_growth(made, "x").values == pytest.approx([2.5, 2.5])


def test_bounds_of_lambda_and_sigma(evidence: Evidence, near) -> None:
    steps, eta = 1000, evidence.run("binary-long").experiment.train.eta
    own = [
        lam[:5, :5].ravel().tolist() + lam[5:, 5:].ravel().tolist()
        for lam in parts(evidence, "binary-long", "decomposition.lambda")
    ]
    low, high = math.log(steps * eta) / 4, 4 * math.log(steps + 1)
    near(learned.lambda_lower, ("binary-long",), [min(v) - low for v in own])
    near(learned.lambda_upper, ("binary-long",), [high - max(v) for v in own])
    level = [sum(v) / len(v) / math.log(10) for v in own]
    near(learned.lambda_over_log_k, ("binary-long",), level)
    largest = [
        max(sig[w, i] for w, i in own_pairs(evidence, "binary", r))
        for r, sig in enumerate(parts(evidence, "binary", "decomposition.sigma"))
    ]
    bound = 2 * 10 / 100 * math.log(101)
    near(learned.sigma_over_bound, ("binary",), [v / bound for v in largest])


def test_a_neuron_that_learned_nothing_is_the_smallest_lambda(evidence: Evidence) -> None:
    run = evidence.run("binary-long")
    sums = {name: s.clone() for name, s in run.trace.final.items()}
    for s in sums.values():
        s[..., 0] = 0
    trace = dataclasses.replace(run.trace, final=sums)
    made = Evidence({}, {}, evidence.source, runs={"x": dataclasses.replace(run, trace=trace)})
    low = math.log(1000 * run.experiment.train.eta) / 4
    assert learned.lambda_lower(made, "x").values == pytest.approx([-low, -low])


def test_shares_of_signal_noise_and_other_classes(evidence: Evidence, near) -> None:
    for setting in ("binary", "k-class"):
        noise, off = [], []
        for r, (lam, sig) in enumerate(
            zip(
                parts(evidence, setting, "decomposition.lambda"),
                parts(evidence, setting, "decomposition.sigma"),
                strict=True,
            )
        ):
            pairs = own_pairs(evidence, setting, r)
            signs = evidence.run(setting).model.neuron_signs.numpy()
            mine = signs[:, None] == np.where(np.arange(10) < 5, 1, -1)
            mine = mine if setting == "binary" else np.eye(10, dtype=bool)
            sigma = np.mean([sig[w, i] for w, i in pairs])
            noise.append(100 / 10 * sigma / lam[mine].mean())
            off.append(-lam[~mine].mean() / lam[mine].mean())
        near(learned.noise_over_signal, (setting,), noise)
        near(learned.off_over_on, (setting,), off)


def test_activity_at_one_is_that_of_a_training_of_one_step(evidence: Evidence, near) -> None:
    for setting in ("binary", "k-class"):
        one = train(evidence.settings[setting].experiment.with_("train.steps=1"))
        on = one.model.preactivations(one.train_batch.x) >= 0
        shares = []
        for r in (0, 1):
            pairs = own_pairs(evidence, setting, r)
            shares.append(np.mean([bool(on[r, i, w]) for w, i in pairs]))
        near(learned.active_at_one, (setting,), shares)


def test_margins_and_slopes_by_sigma(evidence: Evidence, near) -> None:
    for setting in ("binary", "k-class"):
        q = parts(evidence, setting, "margins.q")
        slope = parts(evidence, setting, "margins.slope")
        sigma = [100 / 10 * s for s in parts(evidence, setting, "decomposition.sigma")]
        shares: dict[str, list[float]] = {"margin": [], "slope": [], "slope, multi": []}
        for r in (0, 1):
            hits: dict[str, list[bool]] = {name: [] for name in shares}
            for w, i in own_pairs(evidence, setting, r):
                s, fall = sigma[r][w, i], slope[r][i]
                hits["margin"].append(s / 2 <= q[r][i] <= 2 * s)
                hits["slope"].append(math.exp(-2 * s) / 3 <= fall <= 2 * math.exp(-s / 2))
                hits["slope, multi"].append(math.exp(-2 * s) / 2 <= fall <= 20 * math.exp(-s / 2))
            for name, found in hits.items():
                shares[name].append(float(np.mean(found)))
        if setting == "binary":
            near(learned.margin_by_sigma, (setting,), shares["margin"])
            near(learned.slope_by_sigma, (setting,), shares["slope"])
            assert 0 < shares["margin"][0] < 1
        else:
            near(learned.slope_by_sigma_multi, (setting,), shares["slope, multi"])


def test_ratios_by_gap_of_classes(evidence: Evidence, near) -> None:
    run, wanted = evidence.run("k-class"), []
    q, slope = (parts(evidence, "k-class", f"margins.{n}") for n in ("q", "slope"))
    outputs = run.model.outputs(run.train_batch.x)
    for r in (0, 1):
        c = run.train_batch.cluster[r].tolist()
        others = [f[torch.arange(10) != own] for f, own in zip(outputs[r], c, strict=True)]
        rest = float(torch.stack(others).max())
        hits = []
        for i in range(100):
            for j in range(100):
                gap, ratio = q[r][i] - q[r][j], slope[r][j] / slope[r][i]
                low = (math.exp(gap) + 9) / 10 * math.exp(-rest) * (1 - 1e-9)
                high = math.exp(gap + rest) * (1 + 1e-9)
                hits.append(gap < 0 or low <= ratio <= high)
        wanted.append(np.mean(hits))
    near(learned.ratio_by_gap_multi, ("k-class",), wanted)


def test_the_step_of_equation_17() -> None:
    """On a toy whose own neurons are all on: exact with eta/(nm), off by 2/m as printed."""
    base = ("data.d=512", "samples.train=40", "net.m=5", "train.eta=0.005", "net.sigma_w=1e-6")
    settings = {f"t{t}": Setting(small(*base, f"train.steps={t}")) for t in (40, 41)}
    made = Evidence(settings, settings, Source(train, None))
    assert (made.probe("t40", "activation")["own"] == 1).all()
    assert max(learned.margin_step(made, "t40", "t41").values) < 1e-10
    assert learned.margin_step_printed(made, "t40", "t41").values == pytest.approx([1.0, 1.0])


def test_the_start(evidence: Evidence, near) -> None:
    run = evidence.run("binary")
    y, x = run.train_batch.y, run.train_batch.x
    f = type(run.model)(run.experiment.net, run.data, run.initial).decision(x)
    near(start.slope_at_start, ("binary",), (0.5 - torch.sigmoid(-y * f)).abs().amax(1))
    run = evidence.run("k-class")
    p = type(run.model)(run.experiment.net, run.data, run.initial).outputs(x).softmax(-1)
    farthest = [max((10 * row).flatten().tolist(), key=lambda v: abs(v - 1)) for row in p]
    near(start.class_slope_at_start, ("k-class",), farthest, rel=1e-6)
    near(start.slope_range, ("binary",), [0.0, 0.0])


def test_gaussian_extremes_are_within_their_bounds(evidence: Evidence) -> None:
    for measure in (start.gaussian_minimum, start.gaussian_maximum):
        values = measure(evidence, "binary").values
        assert len(values) == 2
        assert all(0 < v <= 1 for v in values)
    # P(min of 10 <= -sqrt(2 ln 10) - 1/2) = 1 - Phi(2.646)^10 = .0400, over its bound .4412: .0907;
    # the largest of the six ratios is at least this one.
    assert min(start.gaussian_minimum(evidence, "binary").values) >= 0.08


def test_radii_and_accuracies_are_read_off_the_attack(evidence: Evidence, near) -> None:
    found, run = evidence.attacked("snr=2,alpha"), evidence.run("snr=2,alpha")
    unit = 96**0.5
    assert run.data.alpha == 2
    mean = [r.mean() / unit for r in found.smallest]
    near(robustness.radius, ("snr=2,alpha",), [m / 2 for m in mean])
    near(robustness.radius_over_law, ("snr=2,alpha",), [m / 2 * math.sqrt(10) for m in mean])
    near(robustness.worst_radius, ("snr=2,alpha",), [r.min() / unit for r in found.smallest])
    sample = robustness.radius(evidence, "snr=2,alpha")
    assert sample.note == "radii are the strongest attack's: upper bounds"


def test_robustness_within_a_radius_is_certified(evidence: Evidence, near) -> None:
    unit = 96**0.5
    for setting in ("binary", "FD-half"):
        lower = evidence.certified(setting).lower
        cases = ((robustness.certified_at_tenth, 0.1), (robustness.certified_at_third, 1 / 3))
        for measure, share in cases:
            wanted = [np.mean([float(v) > share * unit for v in row]) for row in lower]
            near(measure, (setting,), wanted)
        assert "lower bounds" in measure(evidence, setting).note


def test_a_bracket_is_ordered_and_says_what_it_closes(evidence: Evidence) -> None:
    for setting, closed in (("binary", 1.0), ("k-class", 0.0)):
        found = bracket(evidence, setting)
        assert (found.certified <= found.attacked).all()
        assert found.closed >= closed
    exact, attacked = evidence.certified("binary"), evidence.attacked("binary")
    both = bracket(evidence, "binary")
    assert (attacked.smallest >= exact.lower).all()
    assert np.abs(both.certified - both.attacked).max() <= 1 / exact.lower.shape[1]


def test_one_attack_against_the_union(evidence: Evidence, near) -> None:
    found, unit = evidence.attacked("binary"), 96**0.5
    average = found.by_attack["average-direction"]
    near(robustness.average_over_union, ("binary",), average.mean(1) / found.smallest.mean(1))
    level = 1.1 * unit / math.sqrt(10)
    clean = found.control["pgd-clean-start"]
    wanted = [
        np.mean([float(v) > level for v in row]) - np.mean([float(v) > level for v in best])
        for row, best in zip(clean, found.smallest, strict=True)
    ]
    near(robustness.clean_start_gap, ("binary",), wanted)
    harmless = [np.mean([float(v) > unit for v in row]) for row in found.control["random"]]
    near(robustness.random_is_harmless, ("binary",), harmless)


def test_two_learners_against_each_other(evidence: Evidence, near) -> None:
    coarse, fine = evidence.attacked("binary"), evidence.attacked("k-class")
    leads = []
    for r in (0, 1):
        rows = [
            [np.mean([float(v) > radius for v in found.smallest[r]]) for radius in found.radii]
            for found in (fine, coarse)
        ]
        leads.append(np.subtract(*rows))
    pair = ("binary", "k-class")
    near(robustness.curve_gap, pair, [lead.min() for lead in leads])
    near(robustness.curve_area, pair, [lead.mean() for lead in leads])
    ratio = [fine.smallest[r].mean() / coarse.smallest[r].mean() / math.sqrt(5) for r in (0, 1)]
    near(robustness.fine_over_coarse, pair, ratio)


@pytest.mark.parametrize(("measure", "factor"), [("paper_attack", 2), ("paper_attack_multi", 3)])
def test_the_proofs_perturbation(evidence: Evidence, measure: str, factor: int) -> None:
    """Length factor (1+c) sqrt(d/k) along -y u flips f_FA exactly when it is long enough."""
    for positive, c in (((0, 1), 1.0), ((0,), 3.0)):
        data = Clusters(k=4, d=64, positive=positive)
        run = still(FeatureAveraging(), data, seeds=(0, 1))
        made = Evidence({}, {}, evidence.source, runs={"x": run})
        value = getattr(robustness, measure)(made, "x").values
        batch, mu = run.fresh(robustness.FRESH), run.centres
        u = torch.einsum("k,rkd->rd", data.signs, mu)
        assert torch.allclose(u.norm(dim=-1), torch.tensor(16.0).double())
        moved = batch.x - batch.y[..., None] * factor * (1 + c) / 4 * u[:, None]
        wanted = (run.model.predict(moved) == batch.y).double().mean(1).tolist()
        assert value == pytest.approx(wanted)
        clean = robustness.clean_accuracy(made, "x").values
        assert clean == pytest.approx(run.model.accuracy(batch).tolist())
        assert max(value) < 0.01 < 0.9 < min(clean)


def test_laws_are_measured_over_predicted(evidence: Evidence, near) -> None:
    run = evidence.run("binary-long")
    late = [i for i, s in enumerate(run.trace.steps) if s >= 10]
    worst = [
        max(
            abs(float(row[i]) / predict.margin(run.experiment, run.trace.steps[i]) - 1)
            for i in late
        )
        for row in run.trace.columns["margin"]
    ]
    near(laws.margin_law, ("binary-long",), worst)
    for setting in ("binary", "k-class"):
        run = evidence.run(setting)
        e = run.experiment
        final = [v / predict.margin(e, 100) for v in run.trace.columns["margin"][:, -1]]
        near(laws.margin_over_law, (setting,), final)
        off = [v / predict.off_ratio(e) for v in learned.off_over_on(evidence, setting).values]
        near(laws.off_over_law, (setting,), off)
        error = evidence.probe(setting, "weight-error")
        level = float(error["lambda"].mean())
        near(
            laws.cosine_over_law,
            (setting,),
            [v / predict.cosine_on(e, level) for v in evidence.probe(setting, "cosines")["on"]],
        )
        near(
            laws.error_over_law,
            (setting,),
            [v / predict.weight_error(e, level) for v in error["relative"]],
        )


def test_laws_of_radii(evidence: Evidence, near) -> None:
    found, run = evidence.attacked("FD-half"), evidence.run("FD-half")
    for measure, label, law in (
        (laws.decoupling_plus, 1, 0.5),
        (laws.decoupling_minus, -1, 0.5**0.5),
    ):
        wanted = []
        for row, y in zip(found.smallest, run.fresh(4).y, strict=True):
            mine = [float(v) for v, sign in zip(row, y, strict=True) if sign == label]
            wanted.append(sum(mine) / len(mine) / 96**0.5 / law)
        near(measure, ("FD-half",), wanted)
    for setting in ("NRMC-k10", "NRMC-k4"):
        k = evidence.run(setting).data.k
        mean = evidence.attacked(setting).mean_radius()
        near(laws.non_robust_over_law, (setting,), [m * (k + 6) ** 0.5 / 2 for m in mean])
    mean = evidence.attacked("labels=4").mean_radius()
    near(laws.granular_over_law, ("labels=4",), [m / math.sqrt(4 / 24) for m in mean])


def test_deaths_and_silent_starts(evidence: Evidence, near) -> None:
    share = evidence.probe("few-points", "activation")["start_own_none"]
    n = evidence.run("few-points").experiment.samples.train
    near(laws.none_active_over_law, ("few-points",), [s * (n / 40 + 1) for s in share])
    probe, run = evidence.probe("dead", "activation"), evidence.run("dead")
    wanted = []
    for r, dead in enumerate(probe["dead_neurons"]):
        shares = [float(probe["start_counts"][r, j, j] == 0) for j in range(40) if dead[j]]
        wanted += [sum(shares) / len(shares)] if shares else []
    assert run.experiment.net.h == 1
    assert wanted
    sample = near(laws.dead_had_none, ("dead",), wanted)
    assert sample.note == f"{int(probe['dead_neurons'].sum())} dead neurons"


def test_exponents_are_slopes_of_logarithms(evidence: Evidence) -> None:
    ladder = evidence.expand(("FA-k*",))
    ks = [evidence.run(s).data.k for s in ladder]
    assert ks == [4, 10, 20, 40]
    found = trends.radius_in_k(evidence, *ladder)
    table = [[float(v) for v in evidence.attacked(s).mean_radius()] for s in ladder]
    for r in (0, 1):
        x, y = np.log(ks), np.log([row[r] for row in table])
        slope = ((x - x.mean()) * (y - y.mean())).sum() / ((x - x.mean()) ** 2).sum()
        assert found.values[r] == pytest.approx(slope)
    assert found.note == "sizes 4, 10, 20, 40"
    assert max(found.values) < 0


def test_exponents_in_n_take_any_value_of_a_probe(evidence: Evidence) -> None:
    ladder = evidence.expand(("binary-n*",))
    ns = [evidence.run(s).experiment.samples.train for s in ladder]
    assert ns == [25, 50, 100]
    biases = [evidence.probe(s, "decomposition")["bias_max"].numpy() for s in ladder]
    wanted = np.polyfit(np.log(ns), np.log(biases), 1)[0]
    found = trends.in_n(evidence, "decomposition.bias_max", *ladder)
    assert found.values == pytest.approx(wanted.tolist())
    gaps = [evidence.probe(s, "margins")["ratio"].numpy() - 1 for s in ladder]
    wanted = np.polyfit(np.log(ns), np.log(gaps), 1)[0]
    assert trends.excess_in_n(evidence, "margins.ratio", *ladder).values == pytest.approx(
        wanted.tolist()
    )


def test_the_radius_in_d_is_in_input_units(evidence: Evidence) -> None:
    ladder = evidence.expand(("binary-n*",))
    ds = [evidence.run(s).data.d for s in ladder]
    radii = [evidence.attacked(s).smallest.mean(1).numpy() for s in ladder]
    wanted = np.polyfit(np.log(ds), np.log(radii), 1)[0]
    assert trends.radius_in_d(evidence, *ladder).values == pytest.approx(wanted.tolist())


def test_what_has_no_logarithm_fails(evidence: Evidence) -> None:
    ladder = evidence.expand(("binary-n*",))
    sample = trends.in_n(evidence, "cosines.off", *ladder)
    assert (evidence.probe(ladder[0], "cosines")["off"] < 0).any()
    assert sample.values == []
    assert sample.failed_premises == ("a value on the ladder is not positive and finite",)
