"""Numbers that are not finite: the data, a block or the step size is blamed, whichever it was."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from crosshatch.algorithms.fedbcd import FedBCD
from crosshatch.algorithms.mtcd import MTCD
from crosshatch.algorithms.tdcd import TDCD
from crosshatch.codecs import parse_codec
from crosshatch.data.federated import FederatedData
from crosshatch.errors import ConfigError, TrainingError
from crosshatch.schedules import Constant
from crosshatch.simulator.simulator import Simulator
from crosshatch.task.fusion import Fusion, Head, Sum
from crosshatch.task.losses import Squared
from crosshatch.task.task import Task
from tests.simulator.small import small

NAN = float("nan")


class Behind(nn.Module):
    """A linear layer, and something behind it."""

    def __init__(self, behind: Callable[[Tensor, Tensor], Tensor], inputs: int = 2) -> None:
        super().__init__()
        self.linear = nn.Linear(inputs, 1)
        self.behind = behind

    def forward(self, x: Tensor) -> Tensor:
        return self.behind(self.linear(x), x)


def start(
    block: nn.Module, *, data: FederatedData | None = None, fusion: Fusion | None = None, **options: Any
) -> Simulator:
    torch.manual_seed(0)
    task = Task((block, nn.Linear(2, 1)), fusion or Sum(), Squared(), silos=("a", "b"))
    data = small(clients=(1, 1)).data if data is None else data
    algorithm = options.pop("algorithm", FedBCD(2, Constant(0.01)))
    return Simulator(data, task, algorithm, precision=torch.float64, threads=1, **options)


def complaint(simulator: Simulator) -> str:
    def train() -> None:
        for _ in range(3):
            simulator.run_round()
            simulator.objective()
            simulator.evaluate()

    with pytest.raises(TrainingError) as caught:
        train()
    text = str(caught.value)
    assert "\n" not in text
    return text


def spoilt(part: str, row: int, value: float) -> FederatedData:
    data = small(clients=(1, 1)).data
    x = getattr(data.silos[1], part).clone()
    x[row, 1] = value
    return replace(data, silos=(data.silos[0], replace(data.silos[1], **{part: x})))


@pytest.mark.parametrize("value", [NAN, float("inf")])
@pytest.mark.parametrize(("part", "name"), [("train", "training"), ("test", "test")])
def test_features(part: str, name: str, value: float) -> None:
    text = complaint(start(nn.Linear(2, 1), data=spoilt(part, 3, value)))
    assert f"silo 'b' has features of {name} sample 3 that are NaN or infinite" in text
    assert "step_size" not in text


@pytest.mark.parametrize(
    ("behind", "reason"),
    [
        (lambda out, _: out * NAN, "the block of silo 'a' returns NaN or infinity for training sample 0"),
        (lambda out, x: out / (x[:, :1] != 5.0), "the block of silo 'a' returns NaN or infinity for test sample 2"),
        (lambda out, _: (out * 0).sqrt() + out, "the block of silo 'a' has a gradient that is NaN or infinite"),
    ],
)
def test_blocks(behind: Callable[[Tensor, Tensor], Tensor], reason: str) -> None:
    data = small(clients=(1, 1)).data
    x = data.silos[0].test.clone()
    x[2, 0] = 5.0
    data = replace(data, silos=(replace(data.silos[0], test=x), data.silos[1]))
    text = complaint(start(Behind(behind), data=data))
    assert reason in text
    assert "step_size" not in text


class Logarithm(nn.Module):
    """Fine until the weight turns negative, which a few modest steps bring about."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.tensor(0.05))

    def forward(self, x: Tensor) -> Tensor:
        return (self.weight + 0 * x[:, :1]).log() + 10


def test_a_block_that_does_not_take_weights_of_an_ordinary_size() -> None:
    text = complaint(start(Logarithm(), algorithm=FedBCD(1, Constant(0.01))))
    assert text.startswith("round 1: the training loss is not finite: the block of silo 'a' returns NaN or infinity")


def test_a_head() -> None:
    head = Behind(lambda out, _: out.abs().neg().log())
    text = complaint(start(nn.Linear(2, 1), fusion=Head(head, 0)))
    assert "the head returns NaN or infinity for training sample 0" in text


def test_what_a_codec_could_not_write() -> None:
    block = Behind(lambda out, _: out * NAN)
    simulator = start(block, algorithm=TDCD(2, Constant(0.1)), codecs={"share": parse_codec("quantise(16)")})
    with pytest.raises(
        TrainingError, match="round 1: what is to be sent is not finite: the block of silo 'a' returns NaN"
    ):
        simulator.run_round()


def test_tokens() -> None:
    block = Behind(lambda out, _: out * NAN)
    algorithm = MTCD(tokens=1, local_steps=2, step_size=0.001, hops_between_averages=1)
    assert "the block of silo 'a' returns NaN" in complaint(start(block, algorithm=algorithm))


@pytest.mark.parametrize("block", [nn.Linear(2, 1), Behind(lambda out, _: out.square())])
def test_the_step_size_is_blamed_where_training_diverged(block: nn.Module) -> None:
    simulator = start(block, algorithm=FedBCD(5, Constant(1e9)))

    def train() -> None:
        for _ in range(50):
            simulator.run_round()
            simulator.objective()

    with pytest.raises(TrainingError, match=r"training diverged: lower algorithm.step_size \(now 1e\+09\)"):
        train()


@pytest.mark.parametrize("threads", [0, -1, 1.5, True])
def test_threads_are_at_least_one(threads: Any) -> None:
    with pytest.raises(ConfigError, match=f"^threads = {threads}: must be (at least 1|a whole number) .*all cores"):
        Simulator(small().data, small().task, TDCD(), threads=threads)


@pytest.mark.parametrize("seed", [-1, 1.5, True])
def test_a_seed_is_a_whole_number_from_0_on(seed: Any) -> None:
    with pytest.raises(ConfigError, match=f"^seed = {seed}: a seed is a whole number from 0 on"):
        Simulator(small().data, small().task, TDCD(), seed=seed)
