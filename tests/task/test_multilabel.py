"""Several labels per sample: the loss against torch's, metrics against scikit-learn's, files, training, refusals."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch
from sklearn import metrics as sklearn_metrics
from torch import Tensor
from torch.nn import functional

from crosshatch.algorithms.abcd import ABCD
from crosshatch.algorithms.fedbcd import FedBCD
from crosshatch.algorithms.mtcd import MTCD
from crosshatch.data.build import build
from crosshatch.data.data_settings import DataSettings, FederationSettings, SampleSplit, SiloSettings
from crosshatch.data.federated import FederatedData
from crosshatch.errors import ConfigError, CrosshatchError, DataError, ModelError, PartitionError
from crosshatch.runs.config import read_config
from crosshatch.runs.train import train
from crosshatch.simulator.simulator import Simulator
from crosshatch.task.build_task import build_task
from crosshatch.task.losses import Logistic, MultiLogistic, require_labels
from crosshatch.task.losses.find_loss import find_loss
from crosshatch.task.metrics import evaluate
from crosshatch.task.model_settings import ModelSettings
from crosshatch.trees import flatten

ROWS, LABELS = 160, ("cold", "hot", "wet")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A table with three labels, and the same as two files with the labels in the second."""
    rng = np.random.default_rng(4)
    x = rng.normal(size=(ROWS, 4))
    truth = x @ rng.normal(size=(4, 3)) + 0.2 * rng.normal(size=(ROWS, 3)) > 0
    columns = {"id": np.arange(ROWS), **{f"x{i}": x[:, i] for i in range(4)}}
    labels = {"cold": truth[:, 0].astype(int), "hot": np.where(truth[:, 1], "yes", "no"), "wet": truth[:, 2]}
    pl.DataFrame(columns | labels).write_csv(tmp_path / "all.csv")
    left = {name: columns[name] for name in ("id", "x0", "x1")}
    right = {name: columns[name] for name in ("id", "x2", "x3")}
    pl.DataFrame(left).write_csv(tmp_path / "left.csv")
    pl.DataFrame(right | labels).write_csv(tmp_path / "right.csv")
    pl.DataFrame(left | {"cold": labels["cold"]}).write_csv(tmp_path / "left_cold.csv")
    pl.DataFrame({name: v for name, v in (right | labels).items() if name != "cold"}).write_csv(
        tmp_path / "right_rest.csv"
    )
    return tmp_path


def one_file(folder: Path, labels: str = "shared", **changes: Any) -> FederatedData:
    settings: dict[str, Any] = {"path": "all.csv", "id": "id", "label": LABELS}
    return build(DataSettings(**settings | changes), FederationSettings(silos=2, labels=labels), base=folder, seed=1)


def two_files(folder: Path, left: str, right: str, labels: str = "shared") -> FederatedData:
    silos = (SiloSettings("left", path=left), SiloSettings("right", path=right))
    settings = DataSettings(id="id", label=LABELS)
    return build(settings, FederationSettings(silos=silos, labels=labels), base=folder, seed=1)


def draw(seed: int, n: int = 30) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    scores = 3 * torch.randn(n, 3, generator=generator, dtype=torch.float64)
    return scores, torch.randint(2, (n, 3), generator=generator).double()


@pytest.mark.parametrize("seed", range(5))
def test_loss_is_torchs(seed: int) -> None:
    scores, y = draw(seed)
    leaf = scores.clone().requires_grad_()
    wanted = functional.binary_cross_entropy_with_logits(leaf, y, reduction="none").mean(1)
    torch.testing.assert_close(MultiLogistic().value(scores, y), wanted.detach(), rtol=1e-12, atol=1e-12)
    (gradient,) = torch.autograd.grad(wanted.sum(), leaf)
    torch.testing.assert_close(MultiLogistic().derivative(scores, y), gradient, rtol=1e-12, atol=1e-12)
    moved = torch.randn(scores.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    found = MultiLogistic().continued(gradient, moved)
    torch.testing.assert_close(found, MultiLogistic().derivative(scores + moved, y), rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("labels", [1, 2, 5])
def test_the_curvature_is_that_of_a_mean_over_the_labels(labels: int) -> None:
    loss = find_loss("multi_logistic", classes=labels)
    zero = torch.zeros(1, labels, dtype=torch.float64, requires_grad=True)  # where the logistic loss is most curved
    (slope,) = torch.autograd.grad(loss.value(zero, torch.ones_like(zero)).sum(), zero, create_graph=True)
    columns = [torch.autograd.grad(one, zero, retain_graph=True)[0] for one in slope[0]]
    largest = torch.linalg.eigvalsh(torch.cat(columns)).max()
    assert loss.curvature == pytest.approx(float(largest), rel=1e-12)


def test_metrics_are_scikit_learns() -> None:
    scores, y = draw(0, 60)
    y[:, 2] = 1  # a label that all samples have says nothing about the order
    found = evaluate(["loss", "accuracy", "auc", "f1", "precision", "recall"], scores, y, MultiLogistic())
    truth, predicted = y.numpy().astype(int), (scores > 0).numpy().astype(int)
    average: dict[str, Any] = {"average": "macro", "zero_division": 0}
    wanted = {
        "loss": float(functional.binary_cross_entropy_with_logits(scores, y)),
        "accuracy": sklearn_metrics.accuracy_score(truth, predicted),
        "auc": sklearn_metrics.roc_auc_score(truth[:, :2], scores[:, :2].numpy(), average="macro"),
        "f1": sklearn_metrics.f1_score(truth, predicted, **average),
        "precision": sklearn_metrics.precision_score(truth, predicted, **average),
        "recall": sklearn_metrics.recall_score(truth, predicted, **average),
    }
    assert found == pytest.approx(wanted, abs=1e-12)


def test_metrics_that_make_no_sense() -> None:
    scores, y = draw(0)
    with pytest.raises(ModelError, match="metric 'top5' is for one label per sample"):
        evaluate(["top5"], scores, y, MultiLogistic())
    with pytest.raises(ModelError, match="does not fit a multilabel target: use loss, accuracy, auc"):
        evaluate(["rmse"], scores, y, MultiLogistic())
    with pytest.raises(ModelError, match="needs a label that some test samples have"):
        evaluate(["auc"], scores, torch.ones_like(y), MultiLogistic())


def test_files(folder: Path) -> None:
    whole, joined = one_file(folder), two_files(folder, "left.csv", "right.csv", "right")
    assert (whole.target, whole.classes) == ("multilabel", 3)
    assert whole.y_train.shape == (ROWS * 4 // 5, 3)
    assert not {"cold", "hot", "wet"} & {name for silo in whole.silos for name in silo.features}
    assert torch.equal(whole.y_train, joined.y_train)
    assert joined.label_silo == "right"
    table = pl.read_csv(folder / "all.csv")
    both = torch.cat([whole.y_train, whole.y_test])
    assert both.sum(0).tolist() == [table["cold"].sum(), (table["hot"] == "yes").sum(), table["wet"].sum()]


def test_a_list_of_one_label_is_that_label(folder: Path) -> None:
    data = one_file(folder, label=("cold",), leave_out=("hot", "wet"))
    assert (data.target, data.y_train.dim()) == ("binary", 1)


def test_training_is_gradient_descent_on_the_mean_of_the_losses(folder: Path) -> None:
    data = one_file(folder)
    task = build_task(data, ModelSettings(block="mlp", hidden=(5,)), seed=0)
    simulator = Simulator(data, task, FedBCD(1, 0.3), precision=torch.float64, threads=1)
    modules = [copy.deepcopy(block).double() for block in task.blocks]
    descent = torch.optim.SGD([parameter for module in modules for parameter in module.parameters()], 0.3)
    xs = [silo.train.double() for silo in data.silos]
    for _ in range(10):
        simulator.run_round()
        descent.zero_grad()
        scores = modules[0](xs[0]) + modules[1](xs[1])
        torch.autograd.backward(functional.binary_cross_entropy_with_logits(scores, data.y_train.double()))
        descent.step()
    for weights, module in zip(simulator.weights, modules, strict=True):
        torch.testing.assert_close(weights, flatten(module), rtol=1e-9, atol=1e-11)


def test_held_labels_are_the_mathematics_of_shared_ones(folder: Path) -> None:
    ends = []
    for labels in ("shared", "silo1"):
        data = one_file(folder, labels)
        task = build_task(data, ModelSettings(), seed=0)
        simulator = Simulator(data, task, ABCD(4, 0.1, 32), precision=torch.float64, threads=1)
        for _ in range(10):
            simulator.run_round()
        ends.append(simulator.weights)
    for one, other in zip(*ends, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-8, atol=1e-9)


def test_a_run_from_its_config(folder: Path) -> None:
    (folder / "run.toml").write_text(
        'data = {path = "all.csv", id = "id", label = ["cold", "hot", "wet"]}\n'
        'federation = {silos = 2, clients = 3}\nmodel = {fusion = "head", block = "mlp"}\n'
        'algorithm = {name = "tdcd", step_size = 0.5, local_steps = 5}\nrun = {rounds = 40, threads = 1}\n'
    )
    outcome = train(read_config(folder / "run.toml"), out=folder / "run")
    assert outcome.summary["final"]["auc"] > 0.9
    assert 0 < outcome.summary["final"]["accuracy"] <= 1


BAD: dict[str, tuple[Callable[[Path], object], type[CrosshatchError], str]] = {
    "not a column": (lambda f: one_file(f, label=("cold", "damp")), DataError, "label column 'damp'"),
    "twice": (lambda f: one_file(f, label=("cold", "cold")), DataError, "data.label names 'cold' twice"),
    "more than two values": (
        lambda f: one_file(f, label=("cold", "x0")), DataError, "label 'x0' has the values .*each has two, such as 0",
    ),
    "the id": (lambda f: one_file(f, label=("cold", "id")), DataError, "both data.id and data.label"),
    "none": (lambda f: one_file(f, label=()), DataError, "no label column is named"),
    "regression": (lambda f: one_file(f, target="regression"), DataError, "names 3 columns and data.target"),
    "positive": (lambda f: one_file(f, positive=1), DataError, "names 3 columns and data.positive = '1'"),
    "labels in two files": (
        lambda f: two_files(f, "left_cold.csv", "right_rest.csv"), DataError,
        r"label 'cold' is in .*left_cold.csv and label 'hot' in .*right_rest.csv: keep all labels in one file",
    ),
    "dealt by label": (
        lambda f: build(
            DataSettings(path="all.csv", id="id", label=LABELS),
            FederationSettings(silos=2, clients=2, samples=SampleSplit("dirichlet")), base=f, seed=1,
        ), PartitionError, "needs classes and this is multilabel: use 'permutation'",
    ),
    "another loss": (
        lambda f: build_task(one_file(f), ModelSettings(loss="logistic"), seed=0), ModelError, "use 'multi_logistic'",
    ),
    "class weights": (
        lambda f: build_task(one_file(f), ModelSettings(class_weights=(1.0, 2.0)), seed=0), ModelError,
        "has no classes of which a sample has one",
    ),
    "agents": (
        lambda f: Simulator(one_file(f), build_task(one_file(f), ModelSettings(), seed=0), MTCD(2)), ModelError,
        "algorithm MTCD takes one label per sample",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_input(folder: Path, name: str) -> None:
    attempt, error, words = BAD[name]
    with pytest.raises(error, match=words):
        attempt(folder)


def test_labels_of_another_shape() -> None:
    with pytest.raises(DataError, match="are 4, loss 'multi_logistic' takes 3 zeros and ones per sample"):
        require_labels(MultiLogistic(), torch.zeros(4), 3, "training samples")
    with pytest.raises(DataError, match="are 4 x 3, loss 'logistic' takes one number per sample"):
        require_labels(Logistic(), torch.zeros(4, 3), 2, "training samples")
    bad = torch.zeros(4, 3)
    bad[2, 1] = 0.5
    with pytest.raises(DataError, match=r"the label of training sample 2 is 0.5"):
        require_labels(MultiLogistic(), bad, 3, "training samples")


def test_a_label_that_is_no_name(tmp_path: Path) -> None:
    (tmp_path / "run.toml").write_text(
        'data = {path = "all.csv", label = [1]}\nalgorithm = {name = "fedbcd"}\nrun = {rounds = 1}\n'
    )
    with pytest.raises(ConfigError, match=r"data.label = \[1\]: expected a string or a list of strings"):
        read_config(tmp_path / "run.toml")
