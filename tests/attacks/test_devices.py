"""Devices: the geometry of attacks makes nothing elsewhere, and a model is asked where it is.

Meta tensors have a device and no numbers, and refuse to be mixed with those of another. Runs lie on
the CPU once they are trained, so only a user's module may be elsewhere.
"""

from __future__ import annotations

import pytest
import torch
from torch import nn

from unmix.attacks.foreign import ModuleTarget
from unmix.attacks.frame import InputFrame, Moves, NeuronFrame
from unmix.attacks.objectives import fooled, objective
from unmix.attacks.problem import module_problem
from unmix.attacks.target import FormTarget, Head
from unmix.attacks.threat import Threat
from unmix.nets.activations import Relu

P, D, M, C = 5, 16, 4, 3
META = torch.device("meta")


def meta(*shape: int, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    return torch.empty(*shape, dtype=dtype, device=META)


def net(outputs: int = C) -> FormTarget:
    return FormTarget(meta(M, D), meta(M), Head(meta(M, outputs), Relu(slope_at_zero=0)))


def check(*tensors: torch.Tensor) -> None:
    assert {t.device for t in tensors} == {META}


@pytest.mark.parametrize("norm", ["l2", "linf", "l1"])
@pytest.mark.parametrize("box", [None, (-1.0, 1.0)])
def test_the_geometry_of_a_threat_stays_where_its_points_are(norm, box) -> None:
    threat, x, g, column = Threat(norm=norm, box=box), meta(P, D), meta(P, D), meta(P)
    check(threat.length(g), threat.dual(g), threat.steepest(g), threat.step(g), threat.clip(x, g))
    check(threat.project(x, g, column))
    if box is None:
        # In a box Newton looks at its numbers to know when to end.
        check(threat.closest(x, g, column))


@pytest.mark.parametrize("loss", ["margin", "ce", "dlr"])
@pytest.mark.parametrize("outputs", [1, 2, 3])
def test_scores_and_slopes_stay_where_the_net_is(loss: str, outputs: int) -> None:
    y = meta(P, dtype=torch.int64)
    scores, value, slopes = net(outputs).pull(meta(P, D), objective(loss, y))
    check(scores, value, slopes, fooled(scores, y), net(outputs).head.votes)
    assert slopes.shape == (P, D)


def frames() -> list[InputFrame | NeuronFrame]:
    plain = [InputFrame(net(), meta(P, D), Threat(norm=norm)) for norm in ("l2", "linf", "l1")]
    return [*plain, NeuronFrame(net(), meta(P, M), *(meta(M, M) for _ in range(3)))]


@pytest.mark.parametrize("index", range(4))
def test_a_search_stays_where_its_frame_is(index: int) -> None:
    frame, point = frames()[index], meta(P, dtype=torch.int64)
    moves = frame.random(point, meta(P, frame.width))
    _, value, slopes = frame.pull(moves, objective("margin", point))
    column = meta(P)
    stepped = frame.step(moves, slopes, column, column)
    found = [frame.still(point), moves, stepped, frame.closest(moves, slopes, value, 0.5)]
    found += [frame.momentum(moves, stepped, moves, column), moves.times(column)]
    found.append(Moves.joined(found))
    for one in found:
        check(one.point, one.dz, one.square, frame.length(one), frame.lift(one))
        assert frame.lift(one).shape[1] == D


def test_a_module_is_asked_on_its_own_device_and_answers_on_that_of_the_points() -> None:
    asked = []

    def answer(x: torch.Tensor) -> torch.Tensor:
        asked.append(x.device)
        return torch.zeros(len(x), C)

    target = ModuleTarget(answer, (D,), torch.float32, META)
    assert target.scores(torch.zeros(P, D)).device.type == "cpu"
    assert asked == [META]


def test_all_that_is_read_off_a_module_is_copied_to_the_points(monkeypatch) -> None:
    copied, cpu = [], torch.Tensor.cpu

    def watched(tensor: torch.Tensor) -> torch.Tensor:
        copied.append(tuple(tensor.shape))
        return cpu(tensor)

    monkeypatch.setattr(torch.Tensor, "cpu", watched)
    module = nn.Sequential(nn.Linear(D, M), nn.ReLU(), nn.Linear(M, C))
    x, y = torch.zeros(P, D), torch.zeros(P, dtype=torch.int64)
    problem = module_problem(module, x, y, Threat(), 1.0)
    assert isinstance(problem.target, FormTarget)
    assert sorted(copied) == sorted([(M, D), (M,), (C, M), (C,), (P, D), (P,)])
