"""Class weights against torch's weighted losses, in the loss and in training, and what is refused."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn import functional

from crosshatch.algorithms.abcd import ABCD
from crosshatch.algorithms.fedbcd import FedBCD
from crosshatch.algorithms.mtcd import MTCD
from crosshatch.algorithms.tdcd import TDCD
from crosshatch.data.build import federate, load_dataset
from crosshatch.data.data_settings import FederationSettings
from crosshatch.data.federated import FederatedData
from crosshatch.errors import ConfigError, CrosshatchError, DataError, ModelError
from crosshatch.runs.config import decode_config
from crosshatch.simulator.simulator import Simulator
from crosshatch.task.build_task import balanced_weights, build_task
from crosshatch.task.fusion import Sum
from crosshatch.task.losses import ClassWeighted, CrossEntropy, Logistic
from crosshatch.task.metrics import evaluate
from crosshatch.task.model_settings import ModelSettings
from crosshatch.task.task import Task
from crosshatch.trees import flatten

BINARY = ClassWeighted(Logistic(), (0.5, 3.0))
MANY = ClassWeighted(CrossEntropy(), (0.5, 3.0, 1.0))
LOSSES = [BINARY, MANY]


def draw(loss: ClassWeighted, n: int, seed: int) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    scores = 3 * torch.randn(n, loss.scores(len(loss.weights)), generator=generator, dtype=torch.float64)
    y = torch.randint(len(loss.weights), (n,), generator=generator)
    return scores, y.double() if isinstance(loss.loss, Logistic) else y


def naive(loss: ClassWeighted, scores: Tensor, y: Tensor) -> Tensor:
    """Each sample's loss by torch's own weights."""
    weights = torch.tensor(loss.weights, dtype=torch.float64)
    if isinstance(loss.loss, CrossEntropy):
        return functional.cross_entropy(scores, y, weight=weights, reduction="none")
    return functional.binary_cross_entropy_with_logits(scores[:, 0], y, weights[y.long()], reduction="none")


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
@settings(max_examples=30)
@given(seed=st.integers(0, 10**6))
def test_value_and_derivative_are_torchs(loss: ClassWeighted, seed: int) -> None:
    scores, y = draw(loss, 20, seed)
    leaf = scores.clone().requires_grad_()
    wanted = naive(loss, leaf, y)
    torch.testing.assert_close(loss.value(scores, y), wanted.detach(), rtol=1e-12, atol=1e-12)
    (gradient,) = torch.autograd.grad(wanted.sum(), leaf)
    torch.testing.assert_close(loss.derivative(scores, y), gradient, rtol=1e-12, atol=1e-12)
    stacked = loss.derivative(scores.view(4, 5, -1), y.view(4, 5))
    assert torch.equal(stacked.view_as(scores), loss.derivative(scores, y))


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
@settings(max_examples=30)
@given(seed=st.integers(0, 10**6))
def test_a_derivative_goes_on(loss: ClassWeighted, seed: int) -> None:
    scores, y = draw(loss, 20, seed)
    moved = torch.randn(scores.shape, generator=torch.Generator().manual_seed(seed + 1), dtype=torch.float64)
    found = loss.continued(loss.derivative(scores, y), moved)
    torch.testing.assert_close(found, loss.derivative(scores + moved, y), rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
def test_curvature_bounds_the_second_derivative(loss: ClassWeighted) -> None:
    scores, y = draw(loss, 50, 0)
    for row, label in zip(scores, y, strict=True):
        leaf = row.clone().requires_grad_()
        (slope,) = torch.autograd.grad(loss.value(leaf[None], label[None]).sum(), leaf, create_graph=True)
        rows = [torch.autograd.grad(one, leaf, retain_graph=True)[0] for one in slope]
        hessian = torch.stack(rows)
        assert float(torch.linalg.eigvalsh(hessian).max()) <= loss.curvature + 1e-12


def test_metrics_do_not_know_of_weights() -> None:
    names = ["loss", "accuracy", "auc", "f1"]
    for loss in LOSSES:
        scores, y = draw(loss, 40, 2)
        assert evaluate(names, scores, y, loss) == evaluate(names, scores, y, loss.loss)


def unbalanced(labels: str = "shared") -> FederatedData:
    return federate(load_dataset("breast_cancer"), FederationSettings(silos=2, labels=labels), seed=1)


def test_training_is_gradient_descent_on_the_weighted_loss() -> None:
    """FedBCD with one step is central descent, here on torch's own loss."""
    data = unbalanced()
    task = build_task(data, ModelSettings(class_weights=(0.5, 3.0)), seed=0)
    simulator = Simulator(data, task, FedBCD(1, 0.2), precision=torch.float64, threads=1)
    modules = [copy.deepcopy(block).double() for block in task.blocks]
    trained = [parameter for module in modules for parameter in module.parameters()]
    descent = torch.optim.SGD(trained, 0.2)
    xs, y = [silo.train.double() for silo in data.silos], data.y_train.double()
    for _ in range(15):
        simulator.run_round()
        descent.zero_grad()
        torch.autograd.backward(naive(BINARY, modules[0](xs[0]) + modules[1](xs[1]), y).mean())
        descent.step()
    for weights, module in zip(simulator.weights, modules, strict=True):
        torch.testing.assert_close(weights, flatten(module), rtol=1e-9, atol=1e-11)
    with torch.no_grad():
        loss = float(naive(BINARY, modules[0](xs[0]) + modules[1](xs[1]), y).mean())
    assert simulator.objective() == pytest.approx(loss, abs=1e-12)


@pytest.mark.parametrize("algorithm", [ABCD(4, 0.1, 64), TDCD(4, 0.1, 64, derivatives="continued")])
def test_held_labels_are_the_mathematics_of_shared_ones(algorithm: Any) -> None:
    ends = []
    for labels in ("shared", "silo1"):
        data = unbalanced(labels)
        task = build_task(data, ModelSettings(class_weights="balanced"), seed=0)
        simulator = Simulator(data, task, algorithm, precision=torch.float64, threads=1)
        for _ in range(10):
            simulator.run_round()
        ends.append(simulator.weights)
    for one, other in zip(*ends, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-8, atol=1e-9)


def test_balanced_weights_are_those_of_the_training_labels() -> None:
    data = unbalanced()
    counts = torch.bincount(data.y_train.long()).double()
    task = build_task(data, ModelSettings(class_weights="balanced"), seed=0)
    assert isinstance(task.loss, ClassWeighted)
    torch.testing.assert_close(torch.tensor(task.loss.weights).double(), len(data.y_train) / (2 * counts))
    total = sum(task.loss.weights[int(label)] for label in data.y_train)
    assert total == pytest.approx(len(data.y_train))  # the mean weight is one


BAD: list[tuple[Any, type[CrosshatchError], str]] = [
    ("balance", ConfigError, r"model.class_weights = 'balance': expected 'balanced' or a list of numbers"),
    (["a"], ConfigError, r"model.class_weights = \['a'\]: expected"),
    ({"0": 1.0}, ConfigError, "model.class_weights = {'0': 1.0}: expected 'balanced' or a list of numbers"),
    ([1.0, 0.0], ModelError, "model.class_weights has 0.0: give finite numbers above 0"),
    ([1.0, float("inf")], ModelError, "model.class_weights has inf"),
    ([], ModelError, "needs one weight per class"),
]


@pytest.mark.parametrize(("value", "error", "words"), BAD)
def test_bad_settings(value: Any, error: type[CrosshatchError], words: str) -> None:
    tables = {"data": {"name": "wine"}, "algorithm": {"name": "fedbcd"}, "run": {"rounds": 1}}
    with pytest.raises(error, match=words):
        decode_config(tables | {"model": {"class_weights": value}})


def test_weights_that_do_not_fit_the_data() -> None:
    data = unbalanced()
    with pytest.raises(ModelError, match="has 3 weights, the data has 2 classes: give one per class"):
        build_task(data, ModelSettings(class_weights=(1.0, 2.0, 3.0)), seed=0)
    with pytest.raises(ModelError, match="give 'balanced', or a list with one weight per class"):
        ModelSettings(class_weights="even")  # type: ignore[arg-type]
    blocks = tuple(nn.Linear(silo.train.shape[1], 1) for silo in data.silos)
    three = Task(blocks, Sum(), ClassWeighted(Logistic(), (1.0, 1.0, 1.0)))
    with pytest.raises(ModelError, match="has 3 weights, the data has 2 classes"):
        Simulator(data, three, FedBCD(1, 0.1))
    numbers = federate(load_dataset("diabetes"), FederationSettings(silos=2), seed=1)
    with pytest.raises(ModelError, match="loss 'squared' has no classes of which a sample has one: leave it out"):
        build_task(numbers, ModelSettings(class_weights="balanced"), seed=0)
    with pytest.raises(DataError, match="class 1 has no training samples"):
        balanced_weights(torch.tensor([0, 2, 2]), 3)


def test_agents_take_the_loss_itself() -> None:
    data = unbalanced()
    task = build_task(data, ModelSettings(class_weights="balanced", bias=False), seed=0)
    with pytest.raises(ModelError, match=r"model.class_weights: algorithm MTCD has steps of its own"):
        Simulator(data, task, MTCD(2))
