"""Sample weights: the loss against torch's, training against a naive loop, files, and what is refused."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from crosshatch.algorithms.abcd import ABCD
from crosshatch.algorithms.central import Central
from crosshatch.algorithms.fedbcd import FedBCD
from crosshatch.algorithms.mtcd import MTCD
from crosshatch.algorithms.tdcd import TDCD
from crosshatch.data.build import build, federate, load_dataset
from crosshatch.data.data_settings import DataSettings, FederationSettings, SiloSettings
from crosshatch.data.federated import FederatedData, with_sample_weights
from crosshatch.errors import CrosshatchError, DataError, ModelError
from crosshatch.runs.config import read_config
from crosshatch.runs.train import train
from crosshatch.simulator.simulator import Simulator
from crosshatch.task.build_task import build_task
from crosshatch.task.fusion import Sum
from crosshatch.task.losses import ClassWeighted, CrossEntropy, Logistic, MultiLogistic, SampleWeighted, Squared
from crosshatch.task.model_settings import ModelSettings
from crosshatch.task.task import Task
from crosshatch.trees import flatten

ROWS = 120


def weighted(name: str = "breast_cancer", labels: str = "shared") -> FederatedData:
    data = federate(load_dataset(name), FederationSettings(silos=2, labels=labels), seed=1)
    return with_sample_weights(data, np.random.default_rng(0).uniform(0, 5, len(data.y_train)))


@pytest.mark.parametrize("loss", [Squared(), Logistic(), CrossEntropy(), MultiLogistic()])
def test_value_and_derivative(loss: Squared | Logistic | CrossEntropy | MultiLogistic) -> None:
    generator = torch.Generator().manual_seed(1)
    scores = torch.randn(12, loss.scores(3), generator=generator, dtype=torch.float64)
    weights = torch.rand(12, generator=generator, dtype=torch.float64)
    shape = (12, 3) if isinstance(loss, MultiLogistic) else (12,)
    y = torch.randint(3 if isinstance(loss, CrossEntropy) else 2, shape, generator=generator)
    labels = y if isinstance(loss, CrossEntropy) else y.double()
    beside = torch.cat([y.double().view(12, -1), weights.unsqueeze(1)], dim=1)
    both = SampleWeighted(loss, 1.0)
    torch.testing.assert_close(both.value(scores, beside), weights * loss.value(scores, labels))
    torch.testing.assert_close(both.derivative(scores, beside), weights[:, None] * loss.derivative(scores, labels))
    stacked = both.derivative(scores.view(3, 4, -1), beside.view(3, 4, -1))
    assert torch.equal(stacked.view_as(scores), both.derivative(scores, beside))
    assert torch.equal(both.predict(scores), loss.predict(scores))
    assert both.curvature == loss.curvature


def naive_loss(data: FederatedData, scores: Tensor) -> Tensor:
    y, weights = data.y_train[:, 0], data.y_train[:, 1].double()
    if data.target == "multiclass":
        each = functional.cross_entropy(scores, y.long(), reduction="none")
    else:
        each = functional.binary_cross_entropy_with_logits(scores[:, 0], y.double(), reduction="none")
    return (weights * each).sum() / weights.sum()


@pytest.mark.parametrize("name", ["breast_cancer", "wine"])
@pytest.mark.parametrize("algorithm", [FedBCD(1, 0.2), Central(1, 0.2), ABCD(1, 0.2)])
def test_training_is_gradient_descent_on_the_weighted_mean(name: str, algorithm: Any) -> None:
    data = weighted(name)
    task = build_task(data, ModelSettings(), seed=0)
    simulator = Simulator(data, task, algorithm, precision=torch.float64, threads=1)
    modules = [copy.deepcopy(block).double() for block in task.blocks]
    descent = torch.optim.SGD([parameter for module in modules for parameter in module.parameters()], 0.2)
    xs = [silo.train.double() for silo in data.silos]
    for _ in range(10):
        simulator.run_round()
        descent.zero_grad()
        torch.autograd.backward(naive_loss(data, modules[0](xs[0]) + modules[1](xs[1])))
        descent.step()
    for weights, module in zip(simulator.weights, modules, strict=True):
        torch.testing.assert_close(weights, flatten(module), rtol=1e-6, atol=1e-7)  # weights have float32's mean of 1
    with torch.no_grad():
        loss = float(naive_loss(data, modules[0](xs[0]) + modules[1](xs[1])))
    assert simulator.objective() == pytest.approx(loss, rel=1e-6)
    assert set(simulator.evaluate()) >= {"loss", "accuracy"}


def test_equal_weights_change_nothing() -> None:
    plain = federate(load_dataset("wine"), FederationSettings(silos=2, clients=3), seed=1)
    ends = []
    for data in (plain, with_sample_weights(plain, np.full(len(plain.y_train), 7.0))):
        simulator = Simulator(data, build_task(data, ModelSettings(block="mlp"), seed=0), TDCD(3, 0.1, 32), threads=1)
        for _ in range(5):
            simulator.run_round()
        ends.append((simulator.weights, simulator.objective(), simulator.evaluate()))
    assert all(map(torch.equal, ends[0][0], ends[1][0]))
    assert ends[0][1:] == ends[1][1:]


def test_class_weights_come_on_top() -> None:
    data = weighted()
    loss = build_task(data, ModelSettings(class_weights="balanced"), seed=0).loss
    assert isinstance(loss, SampleWeighted)
    assert isinstance(loss.loss, ClassWeighted)
    assert loss.largest == float(data.y_train[:, 1].max())
    assert float(data.y_train[:, 1].mean()) == pytest.approx(1.0)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rng = np.random.default_rng(4)
    x = rng.normal(size=(ROWS, 4))
    ids = {"id": np.arange(ROWS)}
    label = {"y": (x.sum(1) > 0).astype(int), "w": rng.integers(1, 5, ROWS)}
    pl.DataFrame(ids | {f"x{i}": x[:, i] for i in range(4)} | label | {"name": ["a"] * ROWS}).write_csv(
        tmp_path / "all.csv"
    )
    left, right = ({f"x{i}": x[:, i] for i in pair} for pair in ((0, 1), (2, 3)))
    pl.DataFrame(ids | left).write_csv(tmp_path / "left.csv")
    pl.DataFrame(ids | right | label).write_csv(tmp_path / "right.csv")
    pl.DataFrame(ids | right).write_csv(tmp_path / "features.csv")
    pl.DataFrame(ids | label).write_csv(tmp_path / "labels.csv")
    return tmp_path


def read(folder: Path, *files: str, **settings: Any) -> FederatedData:
    silos = tuple(SiloSettings(f"s{i}", path=file) for i, file in enumerate(files)) if files else 2
    chosen: dict[str, Any] = {"id": "id", "label": "y", "sample_weights": "w"} | settings
    return build(DataSettings(**chosen), FederationSettings(silos=silos), base=folder, seed=1)


def test_files(folder: Path) -> None:
    one = read(folder, path="all.csv", leave_out=("name",))
    two = read(folder, "left.csv", "right.csv")
    three = read(folder, "left.csv", "features.csv", path="labels.csv")
    for data in (one, two, three):
        assert data.weighted
        assert torch.equal(data.y_train, one.y_train)
        assert [name for silo in data.silos for name in silo.features] == ["x0", "x1", "x2", "x3"]
        assert data.y_test.dim() == 1


def test_a_run_from_its_config(folder: Path) -> None:
    (folder / "run.toml").write_text(
        'data = {path = "all.csv", id = "id", label = "y", sample_weights = "w", leave_out = ["name"]}\n'
        'federation = {silos = 2, clients = 2, groups = 2}\n'
        'algorithm = {name = "hsgd", step_size = 0.5, local_steps = 2, global_steps = 4}\n'
        'model = {fusion = "head"}\nrun = {rounds = 20, threads = 1}\n'
    )  # fmt: skip
    assert train(read_config(folder / "run.toml"), out=folder / "run").summary["final"]["auc"] > 0.9


def bad_array(weights: Any) -> Callable[[Path], object]:
    plain = federate(load_dataset("wine"), FederationSettings(silos=2), seed=1)
    return lambda _: with_sample_weights(plain, weights)


def simulate(algorithm: Any, labels: str = "shared") -> Callable[[Path], object]:
    def attempt(_: Path) -> object:
        data = weighted(labels=labels)
        return Simulator(data, build_task(data, ModelSettings(bias=False), seed=0), algorithm)

    return attempt


def own_loss(loss: Any) -> Callable[[Path], object]:
    def attempt(_: Path) -> object:
        data = weighted()
        blocks = tuple(nn.Linear(silo.train.shape[1], 1) for silo in data.silos)
        return Simulator(data, Task(blocks, Sum(), loss), FedBCD(1, 0.1))

    return attempt


BAD: dict[str, tuple[Callable[[Path], object], type[CrosshatchError], str]] = {
    "not a column": (
        lambda f: read(f, path="all.csv", sample_weights="v"), CrosshatchError, "data.sample_weights.*'v'",
    ),
    "text": (
        lambda f: read(f, path="all.csv", sample_weights="name"), DataError, "the weights are text, for example 'a'",
    ),
    "in another file": (
        lambda f: read(f, "left.csv", "right.csv", sample_weights="x0"), DataError,
        r"right.csv has no column 'x0' \(data.sample_weights\): who holds the labels",
    ),
    "negative": (lambda f: read(f, path="all.csv", sample_weights="x0"), DataError, "give finite numbers of at least"),
    "too few": (bad_array([1.0, 2.0]), DataError, "has 2 numbers for 142 training samples: give one for each"),
    "infinite": (bad_array([np.inf] * 142), DataError, "training sample 0 is inf"),
    "all zero": (bad_array([0.0] * 142), DataError, "all weights are 0"),
    "given twice": (lambda _: with_sample_weights(weighted(), [1.0]), DataError, "have weights already"),
    "derivatives that go on": (
        simulate(ABCD(2, 0.1), "silo1"), ModelError, "does not tell how much of it is the sample's weight.*each_step",
    ),
    "agents": (simulate(MTCD(2)), ModelError, "data.sample_weights: algorithm MTCD has steps of its own"),
    "the loss itself": (own_loss(Logistic()), DataError, "x 2, loss 'logistic' takes one number per sample"),
    "a weight above the largest": (
        own_loss(SampleWeighted(Logistic(), 0.01)), DataError, "weights are from 0 to the largest, 0.01",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_input(folder: Path, name: str) -> None:
    attempt, error, words = BAD[name]
    with pytest.raises(error, match=words):
        attempt(folder)


def test_labels_without_weights() -> None:
    data = federate(load_dataset("breast_cancer"), FederationSettings(silos=2), seed=1)
    task = Task(tuple(nn.Linear(s.train.shape[1], 1) for s in data.silos), Sum(), SampleWeighted(Logistic(), 1.0))
    with pytest.raises(DataError, match="takes each label and its weight beside it: use with_sample_weights"):
        Simulator(data, task, FedBCD(1, 0.1))
