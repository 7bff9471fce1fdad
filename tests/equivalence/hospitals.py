"""Small federations of hospitals and their patients' devices, in double precision."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor, nn

from crosshatch.data.federated import FederatedData, SiloData
from crosshatch.exchanges import Algorithm
from crosshatch.simulator.simulator import Simulator
from crosshatch.task.fusion import Fusion, Head, Sum
from crosshatch.task.losses import Squared
from crosshatch.task.task import Task


def hospitals(
    sizes: Sequence[int], *, per_device: int = 1, shape: tuple[int, ...] = (), labels: str | None = None
) -> FederatedData:
    """Groups of these sizes; hospitals hold four columns, devices three of `per_device` samples each."""
    random = np.random.default_rng(sum(sizes))
    groups = np.repeat(np.arange(len(sizes)), sizes)
    n = len(groups)
    place = np.concatenate([np.arange(size) for size in sizes])
    devices = np.unique(np.stack([groups, place // per_device]), axis=1, return_inverse=True)[1].reshape(-1)
    x = torch.as_tensor(random.normal(size=(n, 7)))
    y = torch.as_tensor(random.normal(size=n))
    columns = {"hospital": (x[:, :4], groups), "devices": (x[:, 4:], devices)}
    silos = tuple(
        SiloData(name, part, part, (name,) * part.shape[1], owners.astype(np.int64), int(owners.max()) + 1)
        for name, (part, owners) in columns.items()
    )
    return FederatedData(silos, y, y, "regression", 1, labels, groups if len(sizes) > 1 else None, shape)


def one_group(data: FederatedData, group: int) -> FederatedData:
    """A group alone, its devices numbered anew."""
    rows = np.flatnonzero(data.groups == group)
    silos = []
    for silo in data.silos:
        present, owners = np.unique(silo.owners[rows], return_inverse=True)
        silos.append(replace(silo, train=silo.train[rows], owners=owners, clients=len(present)))
    return replace(data, silos=tuple(silos), y_train=data.y_train[rows], groups=None)


def model(fusion: str = "head") -> Task:
    """A linear block, a small network, and a head of one hidden layer (or their sum)."""
    with torch.random.fork_rng():
        torch.manual_seed(3)
        width = 2 if fusion == "head" else 1
        blocks = (nn.Linear(4, width), nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, width)))
        head: Fusion = Head(nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 1)), 0)
    return Task(blocks, head if fusion == "head" else Sum(), Squared(), silos=("hospital", "devices"))


def simulate(
    data: FederatedData, algorithm: Algorithm, *, rounds: int = 4, fusion: str = "head", **options: object
) -> Simulator:
    """Some rounds in double precision."""
    simulator = Simulator(data, model(fusion), algorithm, precision=torch.float64, threads=1, **options)  # type: ignore[arg-type]
    for _ in range(rounds):
        simulator.run_round()
    return simulator


def distance(one: Simulator, other: Simulator) -> float:
    """Largest difference of any weight."""
    flat: list[Tensor] = [torch.cat(s.weights) for s in (one, other)]
    return float((flat[0] - flat[1]).abs().max())
