"""From end to end on ordinary data: with estimated constants the bounds lie above what is measured, too."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from crosshatch.algorithms.fedbcd import FedBCD
from crosshatch.algorithms.tdcd import TDCD
from crosshatch.data.federated import FederatedData, SiloData, merge_clients
from crosshatch.exchanges import Algorithm
from crosshatch.seeds import generator
from crosshatch.simulator.simulator import Simulator
from crosshatch.task.fusion import Sum
from crosshatch.task.losses import Squared
from crosshatch.task.task import Task
from crosshatch.theory.bounds import fedbcd_bound, fedbcd_limit, tdcd_bound, tdcd_limit
from crosshatch.theory.estimate import Effort, Sampling, estimate

BATCH, STEPS, ROUNDS, CLIENTS = 24, 3, 15, 3


def regression(seed: int) -> tuple[FederatedData, Task, float]:
    """Two silos of three columns, samples dealt to clients at random; the least possible loss."""
    rng = generator(seed, "regression")
    x = rng.standard_normal((120, 6)) @ (np.eye(6) + 0.3 * rng.standard_normal((6, 6)))
    y = x @ rng.standard_normal(6) + 0.5 * rng.standard_normal(120)
    least = float(np.square(x @ np.linalg.lstsq(x, y, rcond=None)[0] - y).mean() / 2)
    silos = tuple(
        SiloData(name, part, part[:2], ("a", "b", "c"), rng.permutation(120) % CLIENTS, CLIENTS)
        for name, part in zip(("left", "right"), torch.split(torch.as_tensor(x), 3, dim=1), strict=True)
    )
    torch.manual_seed(seed)
    blocks = tuple(torch.nn.Linear(3, 1, bias=False, dtype=torch.float64) for _ in silos)
    labels = torch.as_tensor(y)
    return FederatedData(silos, labels, labels[:2], "regression", 1), Task(blocks, Sum(), Squared()), least


def measured(data: FederatedData, task: Task, algorithm: Algorithm, seed: int) -> float:
    """Averaged squared norm of the exact gradient at the starts of rounds."""
    run = Simulator(data, task, algorithm, seed=seed, precision=torch.float64)
    x = torch.cat([silo.train for silo in data.silos], dim=1).numpy()
    y = data.y_train.numpy()
    norms = []
    for _ in range(ROUNDS):
        theta = torch.cat(run.weights).numpy()
        norms.append(np.square(x.T @ (x @ theta - y) / len(y)).sum())
        run.run_round()
    return float(np.mean(norms))


@pytest.mark.parametrize("seed", range(3))
def test_tdcd(seed: int) -> None:
    data, task, least = regression(seed)
    constants = estimate(data, task, Sampling(BATCH), seed=seed, lower_bound=least, effort=Effort(gradients=60))
    eta = tdcd_limit(constants, local_steps=STEPS).stated
    bound = tdcd_bound(constants, step_size=eta, iterations=STEPS * ROUNDS, local_steps=STEPS)
    assert measured(data, task, TDCD(STEPS, eta, BATCH), seed) <= bound.value


@pytest.mark.parametrize("seed", range(3))
def test_fedbcd(seed: int) -> None:
    data, task, least = regression(seed)
    data = merge_clients(data)
    constants = estimate(data, task, Sampling(BATCH), seed=seed, lower_bound=least, effort=Effort(gradients=60))
    eta = fedbcd_limit(constants, local_steps=STEPS).supports
    bound = fedbcd_bound(constants, step_size=eta, iterations=STEPS * ROUNDS, local_steps=STEPS)
    assert measured(data, task, FedBCD(STEPS, eta, BATCH), seed) <= bound.value
