"""Trials: samples put aside, the loss on them against plain gradient descent, and when two losses are as good."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from crosshatch.algorithms.central import Central
from crosshatch.data.build import federate, load_dataset
from crosshatch.data.data_settings import FederationSettings
from crosshatch.data.federated import FederatedData
from crosshatch.errors import ConfigError
from crosshatch.runs.choosing.trials import Trial, TrialResult, put_aside
from crosshatch.simulator.simulator import Simulator
from crosshatch.task.build_task import build_task
from crosshatch.task.model_settings import ModelSettings


def rows(data: FederatedData, part: str) -> list[tuple[float, ...]]:
    """All columns of each sample, and its label."""
    columns = [getattr(silo, part).flatten(1) for silo in data.silos]
    labels = (data.y_train if part == "train" else data.y_test).to(torch.float32)[:, None]
    return sorted(tuple(row) for row in torch.cat([*columns, labels], 1).tolist())


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("breast_cancer", FederationSettings(silos=2, clients=4)),
        ("wine", FederationSettings(silos=3, groups=4, clients=2)),
        ("diabetes", FederationSettings(silos=2)),
    ],
)
def test_a_fifth_of_the_training_samples_and_no_test_sample(name: str, settings: FederationSettings) -> None:
    data = federate(load_dataset(name), settings, seed=3)
    aside = put_aside(data, seed=3, key="step_size")
    assert sorted(rows(aside, "train") + rows(aside, "test")) == rows(data, "train")
    assert len(aside.y_test) == pytest.approx(0.2 * len(data.y_train), abs=1)
    if data.target != "regression":
        for label in np.unique(data.y_train.numpy()):
            assert int((aside.y_test == label).sum()) == pytest.approx(0.2 * int((data.y_train == label).sum()), abs=3)
    if data.groups is not None:
        assert aside.groups is not None
        assert np.unique(aside.groups).tolist() == np.unique(data.groups).tolist()
    assert all(np.unique(silo.owners).tolist() == list(range(silo.clients)) for silo in aside.silos)
    again, other = (put_aside(data, seed=seed, key="step_size") for seed in (3, 4))
    assert rows(again, "test") == rows(aside, "test") != rows(other, "test")


def test_too_few_samples() -> None:
    data = federate(load_dataset("wine"), FederationSettings(silos=2), seed=0)
    silos = tuple(type(silo)(silo.name, silo.train[:2], silo.test, silo.features, silo.owners[:2], 1)
                  for silo in data.silos)  # fmt: skip
    few = FederatedData(silos, torch.tensor([0, 1]), data.y_test, "multiclass", 3)
    with pytest.raises(ConfigError, match=r"^algorithm.step_size: 2 training samples are too few .*: give a number$"):
        put_aside(few, seed=0, key="step_size")


def test_the_loss_of_a_trial_is_that_of_plain_gradient_descent() -> None:
    """A logistic regression by numpy: the mean over rounds 7 and 8 of 8, then over rounds 13 to 16 of 16."""
    data = put_aside(federate(load_dataset("breast_cancer"), FederationSettings(silos=2), seed=0), seed=0, key="")
    task = build_task(data, ModelSettings(block="linear"), seed=0)
    trial = Trial(Simulator(data, task, Central(step_size=0.5), precision=torch.float64, threads=1))
    theta = torch.cat([weights.double() for weights in task.initial()]).numpy()
    x, aside = (
        np.concatenate([np.pad(getattr(silo, part).numpy(), ((0, 0), (0, 1)), constant_values=1.0)
                        for silo in data.silos], 1).astype(np.float64)
        for part in ("train", "test")
    )  # fmt: skip
    y, y_aside = data.y_train.numpy(), data.y_test.numpy()
    losses = []
    for _ in range(16):
        theta = theta - 0.5 * x.T @ (1 / (1 + np.exp(-x @ theta)) - y) / len(y)
        z = aside @ theta
        right, wrong = (float((np.logaddexp(0, z) - labels * z).mean()) for labels in (y_aside, np.roll(y_aside, 1)))
        losses.append(right + (wrong - right) / len(z))
    first = trial.go_on(8)
    assert first.loss == pytest.approx(np.mean(losses[6:8]), rel=1e-9)
    assert trial.go_on(5) == first  # it has them already
    assert trial.go_on(16).loss == pytest.approx(np.mean(losses[12:16]), rel=1e-9)
    assert trial.bytes_a_round == 0


def test_a_trial_that_diverges_ends() -> None:
    data = put_aside(federate(load_dataset("diabetes"), FederationSettings(silos=2), seed=0), seed=0, key="")
    task = build_task(data, ModelSettings(block="linear"), seed=0)
    simulator = Simulator(data, task, Central(step_size=3.0), threads=1)
    verdict = Trial(simulator).go_on(10**6)
    assert verdict.loss == np.inf
    assert "finite" in verdict.error
    grown = Trial(Simulator(data, task, Central(step_size=1.0), threads=1)).go_on(8)
    assert grown.error.startswith("round 8: the loss has grown to ")
    assert simulator.round < 1000


def test_as_good_up_to_the_standard_error() -> None:
    rng = np.random.default_rng(0)
    best = rng.uniform(size=400)
    for shift, spread in [(0.01, 1.0), (0.01, 0.01), (-0.01, 0.1), (0.0, 0.0), (0.05, 1.0)]:
        other = best + shift + spread * rng.normal(size=400)
        ahead = float(np.mean(other - best)) <= float(np.std(other - best)) / 20
        assert TrialResult(8, torch.from_numpy(other)).is_as_good_as(TrialResult(8, torch.from_numpy(best))) == ahead
    assert not TrialResult(8, error="diverged").is_as_good_as(TrialResult(8, torch.zeros(3)))
