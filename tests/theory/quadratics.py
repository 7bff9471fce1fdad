"""Federations whose loss is a quadratic with known constants: linear blocks, squared loss, noise in the labels alone.

Every draw of a client is the same design X (n, d) with labels `X theta + noise`, so a mini-batch's gradient is the full
one plus a vector that does not depend on the weights. A client's draws are centred: its gradient is unbiased.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from crosshatch.data.federated import FederatedData, SiloData
from crosshatch.seeds import generator
from crosshatch.task.fusion import Sum
from crosshatch.task.losses import Squared
from crosshatch.task.task import Task
from crosshatch.theory.constants import Constants

Array = npt.NDArray[np.float64]
Ids = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Quadratic:
    """`x` (n, d) the design; `y` (n,) labels without noise; `noise` (clients, draws, n), centred over draws."""

    x: Array
    y: Array
    noise: Array
    dims: tuple[int, ...]
    start: Array  # (d,)

    @property
    def clients(self) -> int:
        return len(self.noise)

    @property
    def draws(self) -> int:
        return int(self.noise.shape[1])

    @cached_property
    def slices(self) -> tuple[slice, ...]:
        ends = np.cumsum(self.dims)
        return tuple(slice(int(end - n), int(end)) for end, n in zip(ends, self.dims, strict=True))

    @cached_property
    def matrix(self) -> Array:
        """A of `theta^T A theta / 2 - b^T theta`."""
        matrix: Array = self.x.T @ self.x / len(self.y)
        return matrix

    def gradient(self, theta: Array) -> Array:
        """The exact gradient (d,)."""
        gradient: Array = self.matrix @ theta - self.x.T @ self.y / len(self.y)
        return gradient

    @cached_property
    def gap(self) -> float:
        """Loss at the start minus the least loss."""
        best = np.linalg.lstsq(self.x, self.y, rcond=None)[0]
        apart = self.start - best
        return float(apart @ self.matrix @ apart) / 2

    @cached_property
    def pushes(self) -> Array:
        """What each draw adds to the gradient, (clients, draws, d)."""
        pushes: Array = -self.noise @ self.x / len(self.y)
        return pushes

    def constants(self) -> Constants:
        """The exact constants, where a client's draw is one of its `draws`."""
        rows = tuple(float(np.linalg.norm(self.matrix[block], 2)) for block in self.slices)
        squares = np.square(self.pushes)
        noise = tuple(float(squares[..., block].sum(-1).mean(-1).max()) for block in self.slices)
        mean = np.square(self.pushes.mean(0)) if self.clients == 1 else squares.mean(0) / self.clients
        batch = tuple(float(mean[..., block].sum(-1).mean()) for block in self.slices)
        largest = float(np.linalg.norm(self.matrix, 2))
        return Constants(self.gap, largest, rows, max(rows), batch, noise)

    def task(self) -> Task:
        """A linear block a silo, at the start."""
        blocks = []
        for n, block in zip(self.dims, self.slices, strict=True):
            linear = nn.Linear(n, 1, bias=False, dtype=torch.float64)
            with torch.no_grad():
                linear.weight.copy_(torch.as_tensor(self.start[block]))
            blocks.append(linear)
        return Task(tuple(blocks), Sum(), Squared())

    def data(self) -> FederatedData:
        """Rows ordered by client, draw and sample; every silo's clients hold the same samples."""
        copies = self.clients * self.draws
        labels = torch.as_tensor((self.y + self.noise).reshape(-1))
        owners = np.repeat(np.arange(self.clients), self.draws * len(self.y))
        x = torch.as_tensor(np.tile(self.x, (copies, 1)))
        silos = tuple(
            SiloData(f"silo{j}", x[:, block], x[:2, block], tuple(f"x{i}" for i in range(n)), owners, self.clients)
            for j, (n, block) in enumerate(zip(self.dims, self.slices, strict=True))
        )
        return FederatedData(silos, labels, labels[:2], "regression", 1)

    def grouped(self) -> FederatedData:
        """HSGD's federation: `clients` are groups of one hospital (first silo), `draws` their devices (second silo)."""
        data = self.data()
        groups = data.silos[0].owners
        devices = np.repeat(np.arange(self.clients * self.draws), len(self.y))
        device = replace(data.silos[1], owners=devices, clients=self.clients * self.draws)
        return replace(data, silos=(data.silos[0], device), groups=groups)

    def grouped_constants(self, selected: int) -> Constants:
        """Exact constants where `selected` devices of a group are drawn: the hospital's gradient is their mean."""
        hospital, device = (float(np.square(self.pushes[..., b]).sum(-1).mean(-1).max()) for b in self.slices)
        mean = hospital * (self.draws - selected) / (selected * (self.draws - 1))
        return replace(self.constants(), batch_noise=(mean, mean), client_noise=(mean, device))


@dataclass(frozen=True)
class WholeDraws:
    """Mini-batches in which every client has exactly one of its draws, independently of the other clients."""

    seed: int
    parties: int
    draws: int
    samples: int  # of a draw

    def ids(self, round: int, part: int, size: int, samples: int) -> Ids:
        chosen = generator(self.seed, "draw", round, part).integers(self.draws, size=self.parties)
        first = (np.arange(self.parties) * self.draws + chosen) * self.samples
        ids: Ids = (first[:, None] + np.arange(self.samples)).reshape(-1)
        assert len(ids) == size <= samples
        return ids

    def clients(self, round: int, fraction: float, clients: int) -> Ids:
        raise AssertionError((round, fraction, clients))


def random_quadratic(seed: int, *, dims: tuple[int, ...], clients: int = 1, draws: int = 4) -> Quadratic:
    """A random design with correlated columns, a random start and noise of random strength."""
    rng = generator(seed, "quadratic")
    d = sum(dims)
    n = d + int(rng.integers(2, 6))
    mixing = np.eye(d) + rng.uniform(0, 1) * rng.standard_normal((d, d)) / np.sqrt(d)
    x = rng.standard_normal((n, d)) @ mixing * rng.uniform(0.3, 3)
    y = x @ rng.standard_normal(d) + 0.3 * rng.standard_normal(n)
    noise = rng.uniform(0, 3) * rng.standard_normal((clients, draws, n))
    best = np.linalg.lstsq(x, y, rcond=None)[0]
    start = best + 10 ** rng.uniform(-2, 0.5) * rng.standard_normal(d)  # near it the noise terms count
    return Quadratic(x, y, noise - noise.mean(1, keepdims=True), dims, start)
