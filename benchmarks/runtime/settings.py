"""The federations that are raced, made alike in every process."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch

from crosshatch.algorithms.tdcd import TDCD
from crosshatch.data.build import federate, load_dataset
from crosshatch.data.data_settings import DataSettings, FederationSettings
from crosshatch.data.federated import FederatedData
from crosshatch.parties.line import Name
from crosshatch.parties.parties_of import parties_of
from crosshatch.parties.party import Party
from crosshatch.task.blocks.built_in import CNN, MLP, Linear
from crosshatch.task.fusion import Sum
from crosshatch.task.losses import CrossEntropy, Logistic
from crosshatch.task.task import Task

_IMAGES = 6000


@dataclass(frozen=True)
class Setting:
    """TDCD between two hubs; `rounds` are those of a turn, the longest message has so many bytes."""

    name: str
    clients: int
    algorithm: TDCD
    rounds: int
    longest: int
    make: Callable[[int, Path | None], tuple[FederatedData, Task]]

    def parties(self, data: Path | None) -> dict[Name, Party]:
        """All of them, on no line yet, their clients' steps through `local`."""
        torch.manual_seed(3)
        federated, task = self.make(self.clients, data)
        return parties_of(
            federated, task, self.algorithm, seed=1, codecs={}, precision=torch.float32, steps="solved"
        )  # fmt: skip


def _small(clients: int, _: Path | None) -> tuple[FederatedData, Task]:
    """Logistic regression on breast_cancer."""
    data = federate(load_dataset("breast_cancer"), FederationSettings(silos=2, clients=clients), seed=1)
    return data, Task(tuple(Linear(silo.train.shape[1:], 1) for silo in data.silos), Sum(), Logistic())


def _large(clients: int, _: Path | None) -> tuple[FederatedData, Task]:
    """Blocks of a million numbers, 4 MB, on the same data."""
    data = federate(load_dataset("breast_cancer"), FederationSettings(silos=2, clients=clients), seed=1)
    blocks = (MLP(silo.train.shape[1:], 1, hidden=(1_000_000 // (silo.train.shape[1] + 2),)) for silo in data.silos)
    return data, Task(tuple(blocks), Sum(), Logistic())


def _images(clients: int, folder: Path | None) -> tuple[FederatedData, Task]:
    """The papers' CNN on halves of MNIST's images."""
    halves = FederationSettings(silos=2, split="halves", clients=clients)
    data = federate(load_dataset(DataSettings(name="mnist", limit=_IMAGES), folder), halves, seed=1)
    return data, Task(tuple(CNN((1, 28, 14), 10) for _ in data.silos), Sum(), CrossEntropy())


SETTINGS = {
    one.name: one
    for one in (
        Setting("logistic", 4, TDCD(local_steps=1, step_size=0.1, batch_size=64), 200, 65_536, _small),
        Setting("4 MB blocks", 2, TDCD(local_steps=1, step_size=0.1, batch_size=8), 20, 5_000_000, _large),
        Setting("CNN", 4, TDCD(local_steps=10, step_size=0.05, batch_size=256), 3, 5_000_000, _images),
    )
}
