"""Small federations of agents, and a naive loop in NumPy to hold them against."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from crosshatch.data.federated import FederatedData, SiloData
from crosshatch.simulator.graph.graph_state import GraphState
from crosshatch.simulator.graph.simulated_tokens import Tokens
from crosshatch.simulator.simulator import Simulator
from crosshatch.task.fusion import Sum
from crosshatch.task.losses import CrossEntropy, Logistic, Loss, Squared
from crosshatch.task.regulariser import Regulariser
from crosshatch.task.task import Task

Array = npt.NDArray[np.float64]


def make(
    algorithm: Any,
    *,
    agents: int = 4,
    columns: int = 3,
    samples: int = 12,
    loss: Loss | None = None,
    regulariser: Regulariser | None = None,
    block: Callable[[int], nn.Module] | None = None,
    seed: int = 0,
    **options: Any,
) -> Simulator:
    """Agents with random features and labels."""
    loss = loss or Squared()
    random = np.random.default_rng(3)
    y = torch.as_tensor(random.standard_normal(samples))
    if isinstance(loss, Logistic):
        y = (y > 0).double()
    if isinstance(loss, CrossEntropy):
        y = torch.as_tensor(random.integers(0, 3, samples))
    silos = []
    for k in range(agents):
        x = torch.as_tensor(random.standard_normal((samples, columns)))
        silos.append(SiloData(f"a{k}", x, x[:3], (), np.zeros(samples, dtype=np.int64), 1))
    data = FederatedData(tuple(silos), y, y[:3], loss.target, 3)  # type: ignore[arg-type]
    make_block = block or (lambda d: nn.Linear(d, loss.scores(3), bias=False))
    task = Task(
        tuple(make_block(columns) for _ in silos),
        Sum(),
        loss,
        regulariser or Regulariser(),
        tuple(s.name for s in silos),
    )
    settings: dict[str, Any] = {"threads": 1, "precision": torch.float64} | options
    return Simulator(data, task, algorithm, seed=seed, **settings)


def tokens_of(simulator: Simulator) -> Tokens:
    assert isinstance(simulator.state, GraphState)
    assert isinstance(simulator.state.values, Tokens)
    return simulator.state.values


def features(simulator: Simulator) -> list[Array]:
    return [silo.train.numpy() for silo in simulator.data.silos]


class Naive:
    """MTCD as the paper has it: a list of tokens, a list of models, one step after the other."""

    def __init__(self, simulator: Simulator, tokens: int) -> None:
        self.x = features(simulator)
        self.y = simulator.data.y_train.numpy()
        self.logistic = isinstance(simulator.task.loss, Logistic)
        self.regulariser = simulator.task.regulariser
        self.theta = [[np.zeros(x.shape[1]) for x in self.x] for _ in range(tokens)]
        self.z = [np.zeros(len(self.y)) for _ in range(tokens)]

    def visit(self, token: int, k: int, steps: int, mu: float) -> None:
        for _ in range(steps):
            z = self.z[token]
            slope = (1 / (1 + np.exp(-z)) if self.logistic else z) - self.y
            moved = self.theta[token][k] - mu * self.x[k].T @ slope
            shrunk = np.sign(moved) * np.maximum(np.abs(moved) - mu * self.regulariser.l1, 0)
            after = shrunk / (1 + mu * self.regulariser.l2)
            self.z[token] = z + self.x[k] @ (after - self.theta[token][k])
            self.theta[token][k] = after

    def average(self, tokens: list[int]) -> None:
        z = sum(self.z[g] for g in tokens) / len(tokens)
        theta = [sum(self.theta[g][k] for g in tokens) / len(tokens) for k in range(len(self.x))]
        for g in tokens:
            self.z[g] = np.array(z)
            self.theta[g] = [np.array(block) for block in theta]
