"""What cannot be trained is refused in one line that says what to do."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from crosshatch.algorithms.fedavg import FedAvg
from crosshatch.algorithms.fedbcd import FedBCD
from crosshatch.algorithms.fedsgd import FedSGD
from crosshatch.algorithms.hsgd import HSGD
from crosshatch.algorithms.tdcd import TDCD
from crosshatch.errors import ConfigError, CrosshatchError, DataError, ModelError, PartitionError, TrainingError
from crosshatch.exchanges import Algorithm
from crosshatch.network import ConstantNetwork
from crosshatch.protocol.batches import SeededBatches
from crosshatch.schedules import Constant
from crosshatch.simulator.simulator import Simulator
from crosshatch.task.fusion import Fusion, Head, Sum
from crosshatch.task.losses import CrossEntropy, Logistic, Loss, Squared
from crosshatch.task.regulariser import Regulariser
from crosshatch.task.task import Task
from tests.equivalence.hospitals import hospitals, model
from tests.simulator.small import small


def start(algorithm: Algorithm, **layout: Any) -> Simulator:
    """A simulator on the small federation."""
    return small(**layout).prepare(algorithm)


def task_of(*blocks: nn.Module, fusion: Fusion | None = None, loss: Loss | None = None) -> Task:
    """A task of these blocks."""
    return Task(blocks, fusion or Sum(), loss or Squared(), silos=("a", "b")[: len(blocks)])


def run(task: Task, algorithm: Algorithm | None = None, *, label_silo: str | None = None) -> Simulator:
    """One round of the task on two silos of two columns and one client each."""
    data = small(clients=(1, 1), label_silo=label_silo).data
    simulator = Simulator(data, task, algorithm or FedBCD(2, Constant(0.1)), precision=torch.float64, threads=1)
    simulator.run_round()
    return simulator


def more_rounds(simulator: Simulator, count: int) -> None:
    for _ in range(count):
        simulator.run_round()


@pytest.mark.parametrize("algorithm", [FedBCD(), FedSGD()])
def test_fedbcd_takes_one_client_a_silo(algorithm: Algorithm) -> None:
    with pytest.raises(ConfigError, match=r"one client per silo, 'b' has 2: .*TDCD"):
        start(algorithm, clients=(1, 2))


def test_fedavg_takes_one_silo() -> None:
    with pytest.raises(ConfigError, match=r"one silo, this federation has 2: .*TDCD"):
        start(FedAvg(), clients=(1, 2))


def test_groups_need_an_outer_tier() -> None:
    case = small(clients=(1, 1))
    data = replace(case.data, groups=np.arange(6) % 2)
    with pytest.raises(ConfigError, match=r"2 groups"):
        Simulator(data, case.task, TDCD())


@pytest.mark.parametrize("batches", ["reused", "fresh"])
def test_a_batch_is_not_larger_than_the_data(batches: str) -> None:
    simulator = start(TDCD(2, Constant(0.1), 7, batches=batches))  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=r"algorithm.batch_size = 7: .* the 6 training samples; leave it out"):
        simulator.run_round()


def test_outputs_fit_the_sum() -> None:
    with pytest.raises(
        ModelError, match=r"silo 'b' has embeddings of width 2, the sum needs 1 .*model.fusion = 'head'"
    ):
        run(task_of(nn.Linear(2, 1), nn.Linear(2, 2)))


def test_outputs_fit_the_head() -> None:
    with pytest.raises(ModelError, match=r"head does not take 5 embedding numbers .*give it 5 inputs, change model"):
        run(task_of(nn.Linear(2, 2), nn.Linear(2, 3), fusion=Head(nn.Linear(4, 1), 0)))
    with pytest.raises(ModelError, match=r"head returns \(2,\) scores per sample, the loss needs 1: give it 1 outputs"):
        run(task_of(nn.Linear(2, 2), nn.Linear(2, 2), fusion=Head(nn.Linear(4, 2), 0)))


def test_blocks_fit_their_columns() -> None:
    with pytest.raises(ModelError, match=r"silo 'a' does not take samples of shape \(2,\)"):
        run(task_of(nn.Linear(3, 1), nn.Linear(2, 1)))
    with pytest.raises(ModelError, match=r"silo 'a' returned \(4,\) for 2 samples"):
        run(task_of(nn.Sequential(nn.Linear(2, 2), nn.Flatten(0)), nn.Linear(2, 1)))


def test_cross_entropy_needs_classes() -> None:
    with pytest.raises(ModelError, match=r"at least 2 classes"):
        run(task_of(nn.Linear(2, 1), nn.Linear(2, 1), loss=CrossEntropy()))


def test_a_block_has_something_to_train() -> None:
    with pytest.raises(ModelError, match=r"silo 'a' has no trainable parameters"):
        task_of(nn.Flatten(), nn.Linear(2, 1))
    with pytest.raises(ModelError, match=r"silo 'b' has no trainable parameters"):
        task_of(nn.Linear(2, 1), nn.Linear(2, 1).requires_grad_(False))


def test_batch_norm_is_refused() -> None:
    normed = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2), nn.Linear(2, 1))
    with pytest.raises(ModelError, match=r"silo 'a' has BatchNorm.*GroupNorm"):
        task_of(normed, nn.Linear(2, 1))


def test_batch_norm_in_a_head_is_refused() -> None:
    head = nn.Sequential(nn.BatchNorm1d(2), nn.Linear(2, 1))
    with pytest.raises(ModelError, match=r"BatchNorm"):
        task_of(nn.Linear(2, 1), nn.Linear(2, 1), fusion=Head(head, 0))


@pytest.mark.parametrize("holder", [-1, 2])
def test_the_head_has_a_holder(holder: int) -> None:
    with pytest.raises(ModelError, match=f"silo number {holder} of 2"):
        task_of(nn.Linear(2, 1), nn.Linear(2, 1), fusion=Head(nn.Linear(2, 1), holder))


def test_who_trains_the_head_knows_the_labels() -> None:
    with pytest.raises(CrosshatchError, match=r"head"):
        run(task_of(nn.Linear(2, 1), nn.Linear(2, 1), fusion=Head(nn.Linear(2, 1), 0)), label_silo="b")


def test_there_is_a_block_for_every_silo() -> None:
    with pytest.raises(ModelError):
        run(Task((nn.Linear(2, 1),), Sum(), Squared()))


def test_there_is_a_name_for_every_block() -> None:
    with pytest.raises(ModelError):
        Task((nn.Linear(2, 1), nn.Linear(2, 1)), Sum(), Squared(), silos=("a",))


@pytest.mark.parametrize("precision", [torch.float32, torch.float64])
def test_divergence_names_the_round_and_the_step_size(precision: torch.dtype) -> None:
    case = small(clients=(2, 2), steps=5)
    algorithm = TDCD(5, Constant(1e9))
    simulator = case.prepare(algorithm, precision=precision)

    def train() -> None:
        for _ in range(50):
            simulator.run_round()
            simulator.objective()

    with pytest.raises(TrainingError) as caught:
        train()
    text = str(caught.value)
    assert text.startswith(f"round {simulator.round}: ")
    assert "lower algorithm.step_size (now 1e+09)" in text
    assert "\n" not in text
    assert simulator.round < 20


def test_an_infinite_test_score_is_divergence_too() -> None:
    simulator = small().prepare(TDCD(1, Constant(1e20)), precision=torch.float32)
    simulator.run_round()
    simulator.data.silos[0].test.fill_(1e20)  # finite, but not times weights that have run away
    with pytest.raises(TrainingError, match=r"round 1: a test score is no longer finite.*lower algorithm.step_size"):
        simulator.evaluate()


@pytest.mark.parametrize("name", ["c", "a/2", "b/7", "A"])
def test_settings_for_a_party_that_is_not_there(name: str) -> None:
    with pytest.raises(ConfigError, match=f"network.slow has '{name}'"):
        small(clients=(2, 2)).prepare(TDCD(), network=ConstantNetwork(slow={name: 3.0}))


def test_a_regulariser_that_alone_diverges_is_blamed() -> None:
    task = replace(task_of(nn.Linear(2, 1), nn.Linear(2, 1)), regulariser=Regulariser(l2=1e20))
    simulator = run(task)
    with pytest.raises(TrainingError, match=r"lower algorithm.step_size \(now 0.1\) or model.l2 \(now 1e\+20\)$"):
        more_rounds(simulator, 20)


def test_a_client_belongs_to_one_group() -> None:
    data = small(clients=(2, 2)).data
    straddling = replace(data, groups=np.array([0, 0, 0, 1, 1, 1]))  # samples go round the clients
    with pytest.raises(PartitionError, match=r"client 1 of silo 'a' has samples in groups 0 and 1"):
        Simulator(straddling, small().task, HSGD())


def test_batches_are_one_source_or_one_a_group() -> None:
    case, one = small(clients=(1, 1)), SeededBatches(0)
    with pytest.raises(ConfigError, match="batches is a tuple of 1, but nothing is in groups"):
        Simulator(case.data, case.task, TDCD(), batches=(one,))
    grouped, task = hospitals((3, 3)), model()
    with pytest.raises(ConfigError, match="batches is one source for 2 groups"):
        Simulator(grouped, task, HSGD(), batches=one)
    with pytest.raises(ConfigError, match="batches is a tuple of 3 for 2 groups"):
        Simulator(grouped, task, HSGD(), batches=(one, one, one))
    assert Simulator(grouped, task, HSGD(), batches=(one, one)).round == 0


def labelled(y: Tensor, y_test: Tensor, loss: Loss, classes: int) -> Simulator:
    data = small(clients=(1, 1)).data
    target: Any = loss.target
    data = replace(data, y_train=y, y_test=y_test, target=target, classes=classes)
    width = loss.scores(classes)
    return Simulator(data, task_of(nn.Linear(2, width), nn.Linear(2, width), loss=loss), FedBCD())


@pytest.mark.parametrize("where", ["training", "test"])
@pytest.mark.parametrize(
    ("labels", "loss", "reason"),
    [
        ([1, -1, 1, -1, 1, -1], Logistic(), r"sample 1 is -1, loss 'logistic' takes 0 or 1: give \(y \+ 1\) / 2"),
        ([0, 1, 2, 0, 1, 0], Logistic(), r"sample 2 is 2, loss 'logistic' takes 0 or 1"),
        ([0, 1, 2, 3, 1, 0], CrossEntropy(), r"sample 3 is 3, loss 'cross_entropy' takes 0 to 2"),
        ([0, 1, 2, -1, 1, 0], CrossEntropy(), r"sample 3 is -1, loss 'cross_entropy' takes 0 to 2"),
        ([0, 1, 2, float("nan"), 1, 0], Squared(), r"sample 3 is nan, loss 'squared' takes finite numbers"),
        ([0.0, 1, 2, 2, 1, 0], CrossEntropy(), r"samples are of type float32, loss 'cross_entropy' takes int64"),
    ],
)
def test_labels_fit_the_loss(where: str, labels: list[float], loss: Loss, reason: str) -> None:
    bad, good = torch.tensor(labels), torch.tensor([0, 1, 1, 0, 1, 0])
    if loss != CrossEntropy():
        bad, good = bad.float(), good.float()
    with pytest.raises(DataError, match=f"{where} {reason}"):
        labelled(*((bad, good) if where == "training" else (good, bad)), loss, 3)
    assert labelled(good, good, loss, 3).round == 0


def test_a_precision_that_nobody_sends() -> None:
    data = hospitals([8])
    with pytest.raises(ConfigError, match=r"precision = torch.bfloat16: .* float32 or float64"):
        Simulator(data, model(), HSGD(), precision=torch.bfloat16)


def test_a_block_without_sizes() -> None:
    with pytest.raises(ModelError, match="block of silo 'silo1' has parameters without a shape"):
        Task((torch.nn.LazyLinear(1),), Sum(), Squared())
