"""Who may refute: the whole table of the law."""

from __future__ import annotations

import math

import pytest
from scipy import stats

from unmix.claims import (
    REPLICAS,
    Claim,
    Interval,
    Sample,
    Source,
    Verdict,
    Verdicts,
    confidence,
    judge,
    not_run,
)

INSIDE = [1.0, 1.1, 0.9, 1.0, 1.05]
OUTSIDE = [3.0, 3.1, 2.9, 3.0, 3.05]
CROSSING = [1.4, 1.6, 1.5, 1.45, 1.55]
KINDS = ("identity", "experiment", "law", "beyond")
SCALES = ("paper", "reduced")


def claim(kind: str = "experiment", low: float = 0.5, high: float = 1.5) -> Claim:
    return Claim("name", "statement", Source("paper", "Thm 1"), kind, Interval(low, high))


def expected(kind: str, scale: str, values: list) -> str:
    """The law, written a second time."""
    if values is CROSSING:
        return "inconclusive"
    if kind == "law":
        return "supported" if values is INSIDE else "inconclusive"
    decisive = kind == "identity" or scale == "paper"
    if values is INSIDE:
        return "confirmed" if decisive else "supported"
    return "refuted" if decisive else "inconclusive"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize(
    "values", [INSIDE, OUTSIDE, CROSSING], ids=["inside", "outside", "crossing"]
)
def test_the_law(kind: str, scale: str, values: list) -> None:
    for sign in (1, -1):
        wanted = claim(kind) if sign > 0 else claim(kind, -1.5, -0.5)
        verdict = judge(wanted, Sample([sign * v for v in values]), scale, ("digest",))
        assert verdict.status == expected(kind, scale, values)
        assert verdict.scale == ("any" if kind == "identity" else scale)
        assert verdict.mean == pytest.approx(sign * sum(values) / 5)
        assert verdict.low < verdict.mean < verdict.high
        assert (verdict.claim, verdict.replicas, verdict.runs) == ("name", 5, ("digest",))
        assert verdict.bad == (verdict.status == "refuted")
        assert verdict.why


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("values", [INSIDE, OUTSIDE, CROSSING])
def test_without_its_premises_a_claim_fails(kind: str, scale: str, values: list) -> None:
    verdict = judge(claim(kind), Sample(values, ("loss <= 0.1", "finite")), scale)
    assert verdict.status == "failed"
    assert verdict.bad
    assert verdict.why == "premise not met: loss <= 0.1; finite"
    assert verdict.mean is None


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("values", [[], [math.nan], [*INSIDE, math.nan], [math.nan] * 5])
def test_a_measurement_without_numbers_fails(kind: str, values: list) -> None:
    verdict = judge(claim(kind), Sample(values), "paper")
    assert verdict.status == "failed"
    assert verdict.why == "the measurement gave no number on every replica"


@pytest.mark.parametrize("count", range(1, REPLICAS))
@pytest.mark.parametrize("kind", KINDS)
def test_few_replicas_decide_nothing(kind: str, count: int) -> None:
    for values in (INSIDE, OUTSIDE):
        verdict = judge(claim(kind), Sample(values[:count]), "paper")
        assert verdict.status == "inconclusive"
        assert verdict.why == f"{count} replicas; a verdict needs 5"
        assert verdict.mean is not None


@pytest.mark.parametrize("kind", KINDS)
def test_infinity_is_outside_of_what_is_bounded(kind: str) -> None:
    never = Sample([math.inf] * 5)
    assert judge(claim(kind), never, "paper").status == expected(kind, "paper", OUTSIDE)
    open_end = claim(kind, 0.5, math.inf)
    assert judge(open_end, never, "paper").status == expected(kind, "paper", INSIDE)
    # One infinite replica makes the mean infinite.
    mixed = Sample([*INSIDE[:4], math.inf])
    assert judge(claim(kind), mixed, "paper").status == expected(kind, "paper", OUTSIDE)
    opposite = judge(claim(kind), Sample([math.inf, -math.inf, 1.0, 1.0, 1.0]), "paper")
    assert opposite.status in ("inconclusive", "failed")


def test_ends_belong_to_the_interval() -> None:
    for end in (0.5, 1.5):
        assert judge(claim(), Sample([end] * 5), "paper").status == "confirmed"
    for past in (0.5 - 1e-9, 1.5 + 1e-9):
        assert judge(claim(), Sample([past] * 5), "paper").status == "refuted"


def test_equal_values_have_a_sharp_interval() -> None:
    verdict = judge(claim(low=1.0, high=1.0), Sample([1.0] * 5), "paper")
    assert (verdict.status, verdict.low, verdict.high) == ("confirmed", 1.0, 1.0)


@pytest.mark.parametrize("values", [INSIDE, OUTSIDE, [0.1, 7.0], list(range(30)), [1e-9, 2e-9, 0]])
def test_the_confidence_interval_is_students(values: list) -> None:
    wanted = stats.t.interval(
        0.95, len(values) - 1, loc=sum(values) / len(values), scale=stats.sem(values)
    )
    assert confidence([float(v) for v in values]) == pytest.approx(wanted, rel=1e-12)


def test_a_single_value_is_its_own_interval() -> None:
    assert confidence([3.0]) == (3.0, 3.0)


def test_a_note_is_added_to_the_reason() -> None:
    verdict = judge(claim(), Sample(INSIDE, note="sizes 1, 2"), "paper")
    assert verdict.why == "inside; sizes 1, 2"


def test_not_run_is_neither_good_nor_bad() -> None:
    verdict = not_run(claim(), "needs images")
    assert (verdict.status, verdict.why, verdict.scale) == ("not-run", "needs images", "none")
    assert not verdict.bad
    assert verdict.mean is None


def test_intervals_print_and_refuse_to_be_empty() -> None:
    shown = [str(Interval(*ends)) for ends in ((0.5, 1.5), (-math.inf, 2.0), (3.0, math.inf))]
    assert shown == ["[0.5, 1.5]", "<= 2", ">= 3"]
    for ends in ((2.0, 1.0), (math.nan, 1.0), (0.0, math.nan)):
        with pytest.raises(ValueError, match="empty interval"):
            Interval(*ends)


def test_verdicts_print_as_a_table() -> None:
    good = judge(claim(), Sample(INSIDE), "paper")
    lines = str(Verdicts([good, not_run(claim(), "needs images")])).splitlines()
    assert lines[0].split()[:3] == ["name", "confirmed", f"{good.mean:.4g}"]
    assert lines[0].endswith("R=5")
    assert lines[1].endswith("needs images")
    assert isinstance(Verdicts([good])[0], Verdict)
