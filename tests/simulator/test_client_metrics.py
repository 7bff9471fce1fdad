"""Metrics of every client by itself, against a naive loop with scikit-learn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from sklearn.metrics import accuracy_score, f1_score, log_loss, r2_score, roc_auc_score, root_mean_squared_error

from crosshatch.algorithms.central import Central
from crosshatch.algorithms.tdcd import TDCD
from crosshatch.data.build import federate, load_dataset
from crosshatch.data.data_settings import FederationSettings, SampleSplit
from crosshatch.errors import ConfigError
from crosshatch.simulator.client_metrics import LEAST
from crosshatch.simulator.simulator import Simulator
from crosshatch.task.build_task import build_task
from crosshatch.task.model_settings import ModelSettings
from crosshatch.task.own_metric import OwnMetric

Numbers = npt.NDArray[np.float64]


def simulate(name: str, *, algorithm: Any = None, per_client: bool = True, **federation: Any) -> Simulator:
    data = federate(load_dataset(name), FederationSettings(**federation), seed=1, per_client=per_client)
    task = build_task(data, ModelSettings(), seed=1)
    simulator = Simulator(data, task, algorithm or TDCD(local_steps=3, batch_size=64), seed=1)
    for _ in range(6):
        simulator.run_round()
    return simulator


def naive(simulator: Simulator, silo: int) -> dict[str, list[tuple[int, int, float]]]:
    """By metric: client, samples and value, of those that can be measured."""
    data = simulator.data
    scores = simulator.scores([one.test for one in data.silos]).double()
    y = data.y_test.numpy()
    test_owners = data.silos[silo].test_owners
    assert test_owners is not None
    found: dict[str, list[tuple[int, int, float]]] = {}
    for client in range(data.silos[silo].clients):
        mine = test_owners == client
        if mine.sum() < 5:
            continue
        values: dict[str, float] = {}
        if data.target == "regression":
            values["rmse"] = root_mean_squared_error(y[mine], scores[mine, 0].numpy())
            values["r2"] = r2_score(y[mine], scores[mine, 0].numpy())
        elif data.target == "binary":
            p = torch.sigmoid(scores[mine, 0]).numpy()
            values["loss"] = log_loss(y[mine], p, labels=[0, 1])
            values["accuracy"] = accuracy_score(y[mine], p > 0.5)
            if len(set(y[mine])) > 1:
                values["auc"] = roc_auc_score(y[mine], p)
                values["f1"] = f1_score(y[mine], p > 0.5)
        else:
            p = torch.softmax(scores[mine], dim=1).numpy()
            values["accuracy"] = accuracy_score(y[mine], p.argmax(axis=1))
            if len(set(y[mine])) > 1:
                values["f1"] = f1_score(y[mine], p.argmax(axis=1), average="macro", zero_division=0)
        for metric, value in values.items():
            found.setdefault(metric, []).append((client, int(mine.sum()), value))
    return found


CASES = [
    ("breast_cancer", ["loss", "accuracy", "auc", "f1"], {"clients": 4}),
    ("breast_cancer", ["auc", "accuracy"], {"clients": 6, "samples": SampleSplit("dirichlet", alpha=0.2)}),
    ("digits", ["accuracy", "f1"], {"clients": 5, "samples": SampleSplit("main_labels")}),
    ("diabetes", ["rmse", "r2"], {"clients": 3}),
    ("breast_cancer", ["auc"], {"clients": 25}),
]


@pytest.mark.parametrize(("name", "metrics", "federation"), CASES)
def test_against_a_naive_loop(name: str, metrics: Sequence[str], federation: dict[str, Any]) -> None:
    simulator = simulate(name, **federation)
    found = simulator.evaluate_clients(metrics)
    assert list(found) == [silo.name for silo in simulator.data.silos]
    for j, silo in enumerate(found.values()):
        expected = naive(simulator, j)
        for metric in metrics:
            spread, values = silo["metrics"][metric], [value for _, _, value in expected[metric]]
            assert spread["clients"] == len(values)
            if metric in ("auc", "f1"):
                assert silo["one_label"] == silo["measured"] - len(values)
            quartiles = np.percentile(values, [0, 25, 50, 75, 100])
            names = ("min", "lower_quartile", "median", "upper_quartile", "max")
            np.testing.assert_allclose([spread[name] for name in names], quartiles, atol=1e-6)
            assert spread["mean"] == pytest.approx(np.mean(values), abs=1e-6)
            deviation = np.std(values, ddof=1) if len(values) > 1 else 0.0
            assert spread["deviation"] == pytest.approx(deviation, abs=1e-6)
            order = sorted(expected[metric], key=lambda one: one[2], reverse=metric in ("loss", "rmse"))
            assert [one["value"] for one in spread["worst"]] == pytest.approx([one[2] for one in order[:5]], abs=1e-6)
            sizes = {f"{simulator.data.silos[j].name}/{client}": size for client, size, _ in expected[metric]}
            assert all(sizes[one["client"]] == one["samples"] for one in spread["worst"])


def test_who_is_left_out_is_counted() -> None:
    simulator = simulate("breast_cancer", clients=8, samples=SampleSplit("dirichlet", alpha=0.05))
    found = simulator.evaluate_clients(["accuracy", "auc"])
    for silo, one in zip(simulator.data.silos, found.values(), strict=True):
        assert silo.test_owners is not None
        counts = np.bincount(silo.test_owners, minlength=8)
        assert one["clients"] == 8
        assert one["too_small"] == (counts < LEAST).sum() > 0
        assert one["measured"] == (counts >= LEAST).sum()
        assert one["samples"] == {"least": counts.min(), "most": counts.max(), "of_nobody": 0}
        assert one["metrics"]["accuracy"]["clients"] == one["measured"]
        labels = [set(simulator.data.y_test[silo.test_owners == k].tolist()) for k in range(8) if counts[k] >= LEAST]
        assert one["one_label"] == sum(len(few) == 1 for few in labels) > 0
        assert one["metrics"].get("auc", {"clients": 0})["clients"] == one["measured"] - one["one_label"]


def test_other_weights_than_the_last() -> None:
    simulator = simulate("breast_cancer", clients=3)
    before, kept = simulator.evaluate_clients(), tuple(one.clone() for one in simulator.weights)
    simulator.run_round()
    assert simulator.evaluate_clients() != before
    assert simulator.evaluate_clients(weights=kept) == before


def test_the_mean_over_clients_is_that_of_all_samples() -> None:
    """Of the accuracy, weighted by samples: every test sample is somebody's."""
    simulator = simulate("wine", clients=5)
    spread = simulator.evaluate_clients(["accuracy"])["silo1"]["metrics"]["accuracy"]
    assert len(spread["worst"]) == spread["clients"] == 5
    total = sum(one["samples"] * one["value"] for one in spread["worst"])
    assert total / len(simulator.data.y_test) == pytest.approx(simulator.evaluate(["accuracy"])["accuracy"])


def test_own_metrics_and_their_direction() -> None:
    simulator = simulate("breast_cancer", clients=3)
    mine = OwnMetric("share", lambda _scores, y, _loss: float(y.mean()))
    for higher in (True, False):
        spread = simulator.evaluate_clients([mine], higher_is_better={"share": higher})["silo1"]["metrics"]["share"]
        assert spread["worst"][0]["value"] == spread["min" if higher else "max"]


def test_clients_of_central_training_are_measured_too() -> None:
    simulator = simulate("breast_cancer", algorithm=Central(), clients=3)
    assert simulator.evaluate_clients(["auc"])["silo2"]["metrics"]["auc"]["clients"] == 3


def test_clients_in_groups_are_called_as_the_network_calls_them() -> None:
    from crosshatch.algorithms.hsgd import HSGD

    simulator = simulate("breast_cancer", algorithm=HSGD(), clients=2, groups=3)
    found = simulator.evaluate_clients(["accuracy"])["silo1"]["metrics"]["accuracy"]
    assert found["clients"] == 6
    assert {one["client"] for one in found["worst"]} < {f"silo1@{g}/{k}" for g in range(3) for k in range(2)}


@pytest.mark.parametrize(
    ("federation", "metrics", "reason"),
    [
        ({"clients": 1}, ["auc"], "every silo is a single client"),
        ({"clients": 3}, ["suboptimality"], "about the training objective"),
        ({"clients": 100}, ["auc"], "no client has 5 test samples, the most are"),
        ({"clients": 3, "per_client": False}, ["auc"], "call federate with per_client=True"),
    ],
)
def test_refusals(federation: dict[str, Any], metrics: Sequence[str], reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        simulate("breast_cancer", **federation).evaluate_clients(metrics)
