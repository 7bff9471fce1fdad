"""A federation small enough to count its bytes by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import nn

from crosshatch.data.federated import FederatedData, SiloData
from crosshatch.exchanges import Algorithm
from crosshatch.protocol.batches import GivenBatches
from crosshatch.simulator.simulator import Simulator
from crosshatch.task.fusion import Fusion, Sum
from crosshatch.task.losses import CrossEntropy
from crosshatch.task.task import Task

SAMPLES, CLASSES = 12, 3


COLUMNS = (2, 4, 1)


# Twelve samples: the first silo has four clients, the second two (of unequal shares), the third one.
OWNERS = ([0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3], [0] * 9 + [1] * 3, [0] * SAMPLES)


BATCHES = ([0, 1, 4, 5, 2], [11, 3, 9, 10, 6], [7, 8, 6, 0, 1])  # of three rounds


def data_of(owners: Sequence[Sequence[int]], **options: Any) -> FederatedData:
    """Silos `s0`, `s1`, ... whose samples are held as given."""
    torch.manual_seed(0)
    silos = []
    for j, held in enumerate(owners):
        x = torch.randn(len(held), COLUMNS[j])
        silos.append(SiloData(f"s{j}", x, x[:2], (), np.array(held, dtype=np.int64), max(held) + 1))
    y = torch.arange(len(owners[0])) % CLASSES
    return FederatedData(tuple(silos), y, y[:2], "multiclass", CLASSES, **options)


def simulate(
    data: FederatedData, algorithm: Algorithm, blocks: Sequence[nn.Module], fusion: Fusion | None = None, **options: Any
) -> Simulator:
    names = tuple(silo.name for silo in data.silos)
    task = Task(tuple(blocks), fusion or Sum(), CrossEntropy(), silos=names)
    return Simulator(data, task, algorithm, threads=1, **options)


def linear_blocks(silos: int) -> list[nn.Module]:
    return [nn.Linear(COLUMNS[j], CLASSES) for j in range(silos)]


def batches(*rounds: Sequence[int]) -> GivenBatches:
    return GivenBatches(np.array(rounds, dtype=np.int64)[:, None, :])
