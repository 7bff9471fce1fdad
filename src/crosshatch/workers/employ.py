"""Have workers compute a simulation's forward passes and local steps: the one hook of this room."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import numpy as np
import torch
from torch import Tensor

from crosshatch.data.federated import FederatedData, SiloData
from crosshatch.errors import ConfigError
from crosshatch.exchanges import declared
from crosshatch.protocol.members import pair
from crosshatch.simulator.simulator import Simulator
from crosshatch.simulator.state import VerticalState
from crosshatch.simulator.vertical.federation import SimulatedFederation
from crosshatch.workers.apart.load import RowsElsewhere
from crosshatch.workers.at_workers import AtWorkers
from crosshatch.workers.crew import Crew
from crosshatch.workers.division import Division, divide

_WITHOUT = "leave out run.workers"


def employ(simulator: Simulator, crew: Crew, elsewhere: RowsElsewhere | None = None) -> None:
    """Hand the training rows out to a crew, which computes with them from now on; a ConfigError where it cannot.

    Rows that are `elsewhere` are read by each worker that has them, those to be scored as well.

    >>> from crosshatch import TDCD, FederationSettings, InlineWorkers, Logistic, Sum, Task, federate, load_dataset
    >>> data = federate(load_dataset("breast_cancer"), FederationSettings(silos=2, clients=3), seed=1)
    >>> blocks = tuple(torch.nn.Linear(silo.train.shape[1], 1) for silo in data.silos)
    >>> simulator = Simulator(data, Task(blocks, Sum(), Logistic()), TDCD(local_steps=5, batch_size=64), threads=1)
    >>> employ(simulator, InlineWorkers(threads=1))
    >>> for _ in range(20):
    ...     simulator.run_round()
    >>> simulator.evaluate(["auc"])["auc"] > 0.95
    True
    """
    state, data, known = simulator.state, simulator.data, declared(simulator.algorithm)
    require_possible(simulator)
    assert isinstance(state, VerticalState)
    owners = [silo.owners for silo in (pair(data) if known.pairs else data).silos]
    if known.central:
        owners = [np.zeros_like(one) for one in owners]
    groups = None if len(state.groups) == 1 else data.groups
    others = () if elsewhere is None else tuple(map(len, elsewhere.others))
    division = divide(owners, groups, crew.pieces, others)
    names = _names(data, division, crew.pieces)
    torch.set_num_threads(1)  # so that what is left to this process is computed in one order, too
    if elsewhere is None:
        rows = _hand_out(data, division)
        crew.begin(simulator.task, lambda pieces: {key: x for key, x in rows.items() if key[1] in pieces}, names)
    else:
        crew.begin(simulator.task, elsewhere.to_read(data.silos, owners, division), names)
    like = tuple(silo.train[:0] for silo in data.silos)
    at_workers = AtWorkers(crew, division, like, state.groups[0].embedder.keep_passes, len(data.y_train))
    for number, group in enumerate(state.groups):
        mine = None if groups is None else torch.from_numpy(np.flatnonzero(groups == np.unique(groups)[number]))
        _serve(group, number, mine, at_workers)
    simulator.embed_training = at_workers.embed_training
    if elsewhere is not None:
        simulator.embed, simulator.features_here = at_workers.embed_at, False
        simulator.data = replace(data, silos=_by_places(data, division))
    simulator.describe_workers = lambda: crew.describe() | crew.spent.described()


def require_possible(simulator: Simulator) -> None:
    """Refuse what workers do not compute."""
    state, device = simulator.state, simulator.data.y_train.device.type
    if not isinstance(state, VerticalState):
        raise ConfigError(f"run.workers: {type(simulator.algorithm).__name__} sends along a graph: {_WITHOUT}")
    if simulator.task.transfer is not None:
        raise ConfigError(f"run.workers: a transfer task is not for workers: {_WITHOUT}")
    if any(group.encrypted is not None for group in state.groups):
        raise ConfigError(f"run.workers: encrypted derivatives are not for workers: {_WITHOUT}")
    if device != "cpu":
        raise ConfigError(f"run.workers: they compute on processors, run.device = '{device}': use 'cpu', or {_WITHOUT}")


def _serve(group: SimulatedFederation, number: int, samples: Tensor | None, at_workers: AtWorkers) -> None:
    """Have one group, which has these samples or all, know them by their places and ask the workers."""
    silos = tuple(
        replace(silo, train=places[: at_workers.samples] if samples is None else places.index_select(0, samples))
        for silo, places in zip(group.data.silos, at_workers.division.places, strict=True)
    )
    group.passes.data = replace(group.data, silos=silos)
    seed = group.embedder.seed
    group.embedder = replace(group.embedder, elsewhere=partial(at_workers.embed, number, seed, group.passes))
    group.solver = partial(at_workers.solve, strategy=group.strategy, chosen=group.chosen)
    group.at_clients = replace(group.at_clients, solver=group.solver)


def _by_places(data: FederatedData, division: Division) -> tuple[SiloData, ...]:
    """The silos with the places of the samples to be scored instead of their features."""
    tested, ends = len(data.y_train), len(data.y_train) + len(data.y_test)
    return tuple(
        replace(silo, test=places[tested:ends], validation=None if silo.validation is None else places[ends:])
        for silo, places in zip(data.silos, division.places, strict=True)
    )


def _hand_out(data: FederatedData, division: Division) -> dict[tuple[int, int], Tensor]:
    """By silo and piece the rows, client by client."""
    found = {}
    for j, silo in enumerate(data.silos):
        order = torch.from_numpy(division.samples(j)).long()
        for piece, mine in enumerate(torch.tensor_split(order, torch.from_numpy(division.edges[j][1:-1]))):
            found[j, piece] = silo.train.index_select(0, mine)
    return found


def _names(data: FederatedData, division: Division, pieces: int) -> Mapping[int, str]:
    """Of each piece whose rows it has, for messages."""
    found: dict[int, list[str]] = {piece: [] for piece in range(pieces)}
    for silo, pieces_of in zip(data.silos, division.pieces_of, strict=True):
        for piece, names in found.items():
            clients = np.flatnonzero(pieces_of == piece)
            if len(clients):
                words = f"client {clients[0]}" if len(clients) == 1 else f"clients {clients[0]} to {clients[-1]}"
                names.append(f"{words} of silo '{silo.name}'")
    return {piece: ", ".join(names) for piece, names in found.items()}
