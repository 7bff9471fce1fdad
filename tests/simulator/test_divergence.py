"""The rule by which training has diverged, the loss it compares with, and advice by case."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from crosshatch.algorithms.abcd import ABCD
from crosshatch.algorithms.central import Central
from crosshatch.algorithms.fedbcd import FedBCD
from crosshatch.algorithms.fedsgd import FedSGD
from crosshatch.algorithms.mtcd import MTCD
from crosshatch.algorithms.tdcd import TDCD
from crosshatch.algorithms.tiered import Tiered
from crosshatch.codecs import parse_codec
from crosshatch.data.federated import FederatedData, SiloData
from crosshatch.errors import DivergenceError
from crosshatch.graphs import Graph
from crosshatch.schedules import Halving
from crosshatch.simulator.advice.advise import advise
from crosshatch.simulator.divergence import Growth
from crosshatch.simulator.simulator import Simulator
from crosshatch.task.fusion import Sum
from crosshatch.task.losses import CrossEntropy, Logistic, Loss, Squared
from crosshatch.task.regulariser import Regulariser
from crosshatch.task.task import Task
from tests.simulator.agents_case import make
from tests.simulator.small import small


@pytest.mark.parametrize(
    ("first", "zero", "largest"),
    [(0.72, 0.6931, 7.2), (1e-6, 0.6931, 6.931), (300.0, 0.6931, 3000.0), (0.0, 0.0, 0.0)],
)
def test_ten_times_the_larger_is_the_most(first: float, zero: float, largest: float) -> None:
    rule = Growth(first, zero)
    assert rule.notice(largest * 0.9999, 3, str) is None
    found = rule.notice(largest * 1.0001 + 1e-9, 3, "lower it in round {}".format)
    assert found is not None
    assert found.round == 3
    assert found.why.startswith("round 3: training diverged, the training loss is ")
    assert "more than 10 times the larger of" in found.why
    assert found.why.endswith(": lower it in round 3")


@pytest.mark.parametrize("loss", [Squared(), Logistic(), CrossEntropy()])
@pytest.mark.parametrize("on_graph", [False, True])
@pytest.mark.parametrize("samples", [None, 5])
def test_the_loss_of_zeros_is_that_of_blocks_of_zeros(loss: Loss, on_graph: bool, samples: int | None) -> None:
    """A mean over samples, on a graph a sum; of the first `samples` as the training loss itself. No penalty."""
    algorithm: Any = MTCD(2, 1, 1e-3, graph=Graph("ring")) if on_graph else FedSGD(step_size=1e-3)

    def zeros(width: int) -> nn.Module:
        block = nn.Linear(width, loss.scores(3), bias=False)
        nn.init.zeros_(block.weight)
        return block

    simulator = make(algorithm, loss=loss, block=zeros, regulariser=Regulariser(l2=3.0))
    assert simulator.zero_objective(samples) == pytest.approx(simulator.objective(samples), rel=1e-12)
    mean = {
        "squared": float((simulator.data.y_train[:samples].double() ** 2).mean()) / 2,
        "logistic": math.log(2),
        "cross_entropy": math.log(3),
    }[loss.name]
    count = len(simulator.data.y_train) if on_graph else 1
    assert simulator.zero_objective(samples) == pytest.approx(count * mean, rel=1e-12)
    simulator.run_round()
    assert simulator.zero_objective(samples) == pytest.approx(count * mean, rel=1e-12)


FROZEN = "labels are held by 'a' and its derivatives stay frozen for 5 local steps: "
LASTS = (
    "lower algorithm.step_size (now 0.3) or algorithm.local_steps, or have trials find what lasts: "
    "algorithm.step_size = 'measure'"
)
CROWD = "3 silos descend at the same time, each as if the others stood still: use algorithm abcd, or lower "


@pytest.mark.parametrize(
    ("algorithm", "silos", "held", "words"),
    [
        # derivatives of the round's start for all local steps, with two silos or three, in turn or not
        (FedBCD(5, 0.3), 2, True, f"{FROZEN}use algorithm abcd, or take fewer local steps, or lower "),
        (FedBCD(5, 0.3), 3, True, f"{FROZEN}use algorithm abcd"),
        (FedBCD(5, 0.3, order="sequential"), 3, True, f"{FROZEN}use algorithm abcd"),
        (TDCD(5, 0.3, derivatives="each_round"), 2, True, f"{FROZEN}use algorithm abcd"),
        # derivatives that are new at every step, or go on: as if labels were shared
        (TDCD(5, 0.3), 2, True, "lower algorithm.step_size (now 0.3) or algorithm.local_steps"),
        (TDCD(5, 0.3), 3, True, CROWD),
        (ABCD(5, 0.3, anticipation="silos"), 2, True, LASTS),
        (ABCD(5, 0.3, anticipation="silos"), 3, True, LASTS),
        # three silos and more at the same time, unless in turn or anticipating half of them
        (FedBCD(5, 0.3), 3, False, f"{CROWD}algorithm.step_size (now 0.3) or algorithm.local_steps"),
        (TDCD(5, 0.3), 3, False, CROWD),
        (Tiered("V(5) H(5)", 0.3), 3, False, CROWD),
        (FedBCD(5, 0.3, order="sequential"), 3, False, "lower algorithm.step_size (now 0.3) or algorithm.local_steps"),
        (ABCD(5, 0.3, anticipation="silos"), 3, False, LASTS),
        (ABCD(5, 0.3), 3, False, LASTS),
        (ABCD(5, 0.3), 2, False, LASTS),
        (ABCD(5, 0.3, anticipation=1.2), 3, False, "1.2 times as far as it alone: set algorithm.anticipation"),
        (ABCD(5, 0.3, anticipation=1), 3, False, "others stood still: set algorithm.anticipation = '0.5 silos', or "),
        # else the step size, as it is in this round
        (FedBCD(5, 0.3), 2, False, "lower algorithm.step_size (now 0.3) or algorithm.local_steps"),
        (FedBCD(5, Halving(0.8, 2)), 2, False, "lower algorithm.step_size (now 0.4) or algorithm.local_steps"),
        (FedBCD(1, 0.3), 3, True, "lower algorithm.step_size (now 0.3)"),
        (FedSGD(0.3), 3, False, "lower algorithm.step_size (now 0.3)"),
        (Central(5, 0.3), 3, True, "lower algorithm.step_size (now 0.3)"),
    ],
)  # fmt: skip
def test_advice_fits_the_case(algorithm: Any, silos: int, held: bool, words: str) -> None:
    case = small(clients=(1,) * silos, label_silo="a" if held else None)
    text = advise(algorithm, case.data, case.task, round=3, codecs={})
    assert words in text
    if words.startswith("lower"):
        assert text == words


def test_on_views_of_one_thing_shorter_steps_help_and_more_anticipation_does_not() -> None:
    """Twelve random views of the same ten numbers, with noise of a tenth: what is advised lasts there."""
    random = np.random.default_rng(1)
    latent = random.standard_normal((300, 10))
    y = torch.as_tensor((latent @ random.standard_normal((10, 10))).argmax(1))
    silos = []
    for k in range(12):
        view = latent @ random.standard_normal((10, 10))
        x = torch.as_tensor((view - view.mean(0)) / view.std(0) + 0.1 * random.standard_normal(view.shape)).float()
        silos.append(SiloData(f"view{k}", x, x[:3], (), np.zeros(300, dtype=np.int64), 1))
    data = FederatedData(tuple(silos), y, y[:3], "multiclass", 10)
    torch.manual_seed(1)
    blocks = tuple(nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.Linear(16, 10)) for _ in silos)
    task = Task(blocks, Sum(), CrossEntropy())

    def rounds(algorithm: ABCD) -> int:
        """Before it diverged, 30 at most."""
        simulator = Simulator(data, task, algorithm, threads=1)
        rule = Growth(simulator.objective(), simulator.zero_objective())
        for number in range(30):
            simulator.run_round()
            if rule.notice(simulator.objective(), number, str):
                return number
        return 30

    assert rounds(ABCD(10, 3.0, 100)) < 30
    assert rounds(ABCD(10, 3.0, 100, anticipation="silos")) <= rounds(ABCD(10, 3.0, 100))
    assert rounds(ABCD(10, 1.0, 100)) == 30
    assert "anticipation" not in advise(ABCD(10, 3.0, 100), data, task, round=3, codecs={})


def test_no_algorithm_is_advised_that_would_refuse() -> None:
    """Behind a trained head derivatives cannot go on."""
    case = small(clients=(1, 1, 1), label_silo="a", holder=0)
    text = advise(FedBCD(5, 0.3), case.data, case.task, round=3, codecs={})
    assert text == f"{FROZEN}take fewer local steps, or lower algorithm.step_size (now 0.3)"
    assert "abcd" not in advise(TDCD(5, 0.3), case.data, case.task, round=3, codecs={})


def test_a_regulariser_that_alone_diverges_comes_first() -> None:
    case = small(clients=(1, 1, 1), label_silo="a")
    task = replace(case.task, regulariser=Regulariser(l2=20.0))
    assert advise(FedBCD(5, 0.3), case.data, task, round=3, codecs={}) == (
        "lower algorithm.step_size (now 0.3) or model.l2 (now 20)"
    )


def test_agents_take_turns_by_themselves() -> None:
    simulator = make(MTCD(2, 5, 1e-3, graph=Graph("ring")))
    assert simulator.advise(1) == "lower algorithm.step_size (now 0.001) or algorithm.local_steps"


def test_an_algorithm_that_declares_nothing_gets_advice() -> None:
    class Plain:
        local_steps, step_size = 5, 0.3

    case = small(clients=(1, 1, 1))
    assert advise(Plain(), case.data, case.task, round=1, codecs={}).startswith(CROWD)  # type: ignore[arg-type]


def test_numbers_that_are_no_longer_finite_get_the_same_advice() -> None:
    """FedSGD descends at this step size; twenty steps with a derivative that stays frozen do not."""
    case = small(clients=(1, 1, 1), label_silo="a")
    simulator = Simulator(case.data, case.task, FedBCD(20, 0.3), precision=torch.float32)

    def train() -> None:
        for _ in range(500):
            simulator.run_round()
            simulator.objective()

    words = f"no longer finite, training diverged: {FROZEN.replace('5', '20')}use algorithm abcd"
    with pytest.raises(DivergenceError, match=words):
        train()


OVERSHOT = ": even without local steps the first step raises the training loss"


@pytest.mark.parametrize("held", [False, True])
@pytest.mark.parametrize("algorithm", [FedBCD, TDCD, ABCD])
@pytest.mark.parametrize("times", [0.99, 1.01, 1e6])
def test_a_step_size_that_no_algorithm_could_use_comes_first(algorithm: Any, held: bool, times: float) -> None:
    """The step at which the loss is where it was, in closed form: along it the loss is a parabola."""
    case = small(clients=(1, 1, 1), label_silo="a" if held else None)
    leaves = [weights.clone().requires_grad_() for weights in case.task.initial()]

    def loss(step: float, along: list[torch.Tensor]) -> torch.Tensor:
        moved = [leaf - step * one for leaf, one in zip(leaves, along, strict=True)]
        scores = case.task.scores(moved, [silo.train for silo in case.data.silos])
        return case.task.loss.value(scores, case.data.y_train).mean()

    slope = list(torch.autograd.grad(loss(0, [torch.zeros_like(leaf) for leaf in leaves]), leaves))
    first = float(sum((one**2).sum() for one in slope))
    bend = loss(1, slope).item() - loss(0, slope).item() + first  # loss(t) = loss(0) - first t + bend t^2
    text = advise(algorithm(5, times * first / bend), case.data, case.task, round=1, codecs={})
    assert text.endswith(OVERSHOT) == (times > 1)
    assert text.startswith("lower algorithm.step_size (now ") or times < 1


def test_what_is_not_trained_does_not_move_in_the_trial() -> None:
    case = small(clients=(1, 1, 1))
    for block in case.task.blocks:
        block.requires_grad_(requires_grad=False)
    assert OVERSHOT not in advise(FedBCD(5, 1e6), case.data, case.task, round=1, codecs={})


@pytest.mark.parametrize(
    ("exchange", "codec", "remedy"),
    [
        ("share", "topk(0.1)", "try 'ef(topk(0.1))', or leave it out"),
        ("derivatives", "topk(0.1) | quantise(16)", "try 'ef(topk(0.1) | quantise(16))', or leave it out"),
        ("average", "topk(0.1)", "try 'ef(topk(0.1), accumulate)', or leave it out"),
        ("share", "randomk(0.1, unbiased)", "leave out unbiased, or leave it out"),
        ("share", "ef(topk(0.1))", None),
        ("share", "half", None),
        ("share", "identity", None),
    ],
)
def test_a_codec_may_be_the_cause(exchange: str, codec: str, remedy: str | None) -> None:
    case, parsed = small(clients=(1, 1, 1)), parse_codec(codec)
    for algorithm in (FedSGD(0.3), FedBCD(5, 0.3), ABCD(5, 0.3)):
        plain = advise(algorithm, case.data, case.task, round=1, codecs={})
        named = f"; codecs.{exchange} = '{parsed}' loses a part of every message and may be the cause as well: {remedy}"
        expected = plain if remedy is None else plain + named
        assert advise(algorithm, case.data, case.task, round=1, codecs={exchange: parsed}) == expected
    if remedy is not None and "try" in remedy:
        assert str(parse_codec(remedy.split("'")[1])) == remedy.split("'")[1]  # what is advised can be set


def test_a_simulator_knows_its_codecs() -> None:
    case = small(clients=(1, 1, 1))
    simulator = Simulator(case.data, case.task, FedBCD(5, 0.3), codecs={"share": parse_codec("topk(0.1)")})
    assert "codecs.share = 'topk(0.1)'" in simulator.advise(1)
