"""The theorems' constants of a federation, estimated by a short pre-training of the central model.

L and the noise are taken at the start and after a few mini-batch steps, the larger counts; the blocks' constants where
L is larger. They are measured on drawn samples: a maximum over clients and batches is that over those drawn. Noise is a
mean over clients and groups, as in the proofs, and holds how far a client's samples are from everybody's as well.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from crosshatch.data.federated import FederatedData
from crosshatch.errors import ConfigError
from crosshatch.seeds import generator, torch_seed
from crosshatch.task.task import Task
from crosshatch.theory.central_loss import CentralLoss, Rows
from crosshatch.theory.constants import Constants
from crosshatch.theory.curvature import block_norm, symmetric_norm


@dataclass(frozen=True)
class Sampling:
    """How a round's samples are drawn: `batch_size` of all (None: all), or those of a `fraction` of the clients.

    With groups it is a group's samples that are drawn from.
    """

    batch_size: int | None = None
    fraction: float | None = None

    def draw(self, data: FederatedData, rng: np.random.Generator) -> Rows:
        """One round's samples in one group, drawn without replacement."""
        rows = np.arange(len(data.y_train), dtype=np.int64)
        if data.groups is not None:
            rows = np.flatnonzero(data.groups == rng.choice(np.unique(data.groups)))
        if self.fraction is not None and self.fraction < 1:
            owners = max((silo.owners[rows] for silo in data.silos), key=lambda held: len(np.unique(held)))
            clients = np.unique(owners)
            count = max(1, int(self.fraction * len(clients) + 0.5))
            return rows[np.isin(owners, rng.choice(clients, count, replace=False))]
        if self.batch_size is None:
            return rows
        if self.batch_size > len(rows):
            raise ConfigError(
                f"algorithm.batch_size = {self.batch_size}: more than the {len(rows)} samples to draw from; "
                "leave it out to use all of them"
            )
        return rng.choice(rows, self.batch_size, replace=False, shuffle=False)


@dataclass(frozen=True)
class Effort:
    """How long the pre-training may take.

    `gradients` of mini-batches or clients' shares for the noise at each of the two points; `samples` for curvature;
    `products` with the Hessian for each norm; `steps` of pre-training between the points.
    """

    gradients: int = 200
    samples: int = 1024
    products: int = 12
    steps: int = 10


def estimate(
    data: FederatedData,
    task: Task,
    sampling: Sampling,
    *,
    seed: int,
    lower_bound: float = 0.0,
    effort: Effort | None = None,
) -> Constants:
    """F0, Lipschitz constants and noise of a federation whose rounds draw their samples by `sampling`.

    `lower_bound` of the loss: 0 is one for every loss here, and what the HSGD paper takes.
    """
    effort = effort or Effort()
    central = CentralLoss(data, task)
    start = central.start()
    first = _Point(central, start, sampling, effort, seed, 0)
    at_first = first.lipschitz()
    later = _Point(central, _pretrain(first, 0.25 / max(at_first, 1e-30)), sampling, effort, seed, 1)
    at_later = later.lipschitz()
    steepest = first if at_first >= at_later else later
    noises = [point.noise() for point in (first, later)]
    return Constants(
        gap=central.value(start, central.rows) - lower_bound,
        lipschitz=max(at_first, at_later),
        block_lipschitz=steepest.block_lipschitz(),
        local_lipschitz=steepest.local_lipschitz(),
        batch_noise=_largest([batch for batch, _ in noises]),
        client_noise=_largest([client for _, client in noises]),
    )


def gradient_squared(data: FederatedData, task: Task, weights: tuple[Tensor, ...]) -> float:
    """Squared norm of the full gradient at these weights, one flat vector per silo: what strategy 3 asks for."""
    central = CentralLoss(data, task)
    return float(central.gradient(central.join(weights), central.rows).square().sum())


@dataclass(frozen=True)
class _Point:
    """One set of weights at which the constants are taken."""

    central: CentralLoss
    theta: Tensor
    sampling: Sampling
    effort: Effort
    seed: int
    number: int

    def draws(self, purpose: str) -> Iterator[Rows]:
        count = 0
        while True:
            rng = generator(self.seed, f"theory {purpose}", self.number, count)
            yield self.sampling.draw(self.central.data, rng)
            count += 1

    @property
    def _pairs(self) -> int:
        """Steps for a block's norm: each takes two products."""
        return max(1, self.effort.products // 2)

    def _direction(self) -> Tensor:
        device = self.theta.device
        random = torch.Generator(device).manual_seed(torch_seed(self.seed, "theory direction", self.number))
        return torch.randn(self.theta.shape, generator=random, dtype=self.theta.dtype, device=device)

    def _some_rows(self) -> Rows:
        rows = self.central.rows
        if len(rows) <= self.effort.samples:
            return rows
        return generator(self.seed, "theory rows").choice(rows, self.effort.samples, replace=False)

    def lipschitz(self) -> float:
        """L: the norm of the Hessian of the whole federation's loss."""
        hessian = self.central.curvature(self.theta, self._some_rows())
        return symmetric_norm(hessian, self._direction(), steps=self.effort.products)

    def block_lipschitz(self) -> tuple[float, ...]:
        hessian = self.central.curvature(self.theta, self._some_rows())
        start = self._direction()
        return tuple(block_norm(hessian, block, start, steps=self._pairs) for block in self.central.slices)

    def local_lipschitz(self) -> float:
        """The largest L_kj of some clients' shares of one batch."""
        rows = next(self.draws("local"))
        start = self._direction()
        return max(
            block_norm(self.central.curvature(self.theta, share), block, start, steps=self._pairs)
            for silo, block in enumerate(self.central.slices)
            for share in self._shares(silo, rows, most=4)
        )

    def noise(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """Mean squared distance from the full gradient, block by block: of a mini-batch, and of a client's share."""
        full = self.central.gradient(self.theta, self.central.rows)
        silos = range(len(self.central.slices))
        batches: list[list[float]] = [[] for _ in silos]
        clients: list[list[float]] = [[] for _ in silos]
        spent = 0
        for rows in self.draws("noise"):
            apart = self._distances(rows, full)
            spent += 1
            for silo in silos:
                batches[silo].append(apart[silo])
                shares = self._shares(silo, rows)
                own = [apart] if len(shares) == 1 else [self._distances(share, full) for share in shares]
                spent += len(shares) - 1
                clients[silo].append(float(np.mean([each[silo] for each in own])))
            if spent >= self.effort.gradients:
                break
        return tuple(float(np.mean(d)) for d in batches), tuple(float(np.mean(d)) for d in clients)

    def _distances(self, rows: Rows, full: Tensor) -> list[float]:
        apart = (self.central.gradient(self.theta, rows) - full).square()
        return [float(apart[block].sum()) for block in self.central.slices]

    def _shares(self, silo: int, rows: Rows, *, most: int = 8) -> list[Rows]:
        """The samples of some clients of a silo in a batch; the batch itself where it has one client."""
        owners = self.central.data.silos[silo].owners[rows]
        present = np.unique(owners)
        if len(present) > most:
            rng = generator(self.seed, "theory shares", self.number, silo, int(rows[0]))
            present = rng.choice(present, most, replace=False)
        return [rows[owners == client] for client in present]


def _pretrain(point: _Point, step_size: float) -> Tensor:
    theta = point.theta
    for _, rows in zip(range(point.effort.steps), point.draws("pre-training"), strict=False):
        theta = theta - step_size * point.central.gradient(theta, rows)
    return theta


def _largest(rows: list[tuple[float, ...]]) -> tuple[float, ...]:
    return tuple(max(column) for column in zip(*rows, strict=True))
