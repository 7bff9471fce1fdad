"""Averages within the federation: the clients of all groups together, each with the weight that `weights` gives it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from torch import Tensor

from crosshatch.data.federated import FederatedData, SiloData
from crosshatch.errors import ConfigError
from crosshatch.exchanges import ClientWeights, Declared, LocalSteps, Within
from crosshatch.protocol.batches import GivenBatches
from crosshatch.simulator.simulator import Simulator
from crosshatch.task.fusion import Sum
from crosshatch.task.losses import Squared
from crosshatch.task.optimisers import Adam
from crosshatch.task.task import Task
from crosshatch.testing.check_federation import check_rounds
from crosshatch.testing.federations import FederationCase
from crosshatch.testing.parties.engine import PartyByParty
from crosshatch.topology import Topology

GROUPS = np.repeat([0, 1], [6, 12])
# Two and three clients of the first silo, one and two of the second; their samples are not alike either.
OWNERS = (
    np.array([0, 0, 0, 0, 0, 1, 2, 2, 2, 2, 2, 2, 2, 3, 3, 3, 4, 4]),
    np.array([0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2]),
)
BATCHES = np.array([[0, 1, 2], [3, 4, 5]]), np.array([[0, 1, 2, 3], [7, 8, 10, 11]])  # by group, of two rounds


@dataclass(frozen=True)
class Together(Declared):
    """Local steps, then the average of all clients at the server."""

    weights: ClientWeights
    local_steps: int = 1
    step_size: float = 0.3
    batch_size: int = 3

    within: ClassVar[Within] = "federation"

    @property
    def topology(self) -> Topology:
        steps = self.local_steps
        return Topology.parse(f"H({steps}) V({steps}) H({steps})")

    def run_round(self, fed: Any, blocks: Any, r: int) -> Any:
        batch = fed.draw_batch(self.batch_size, round=r)
        blocks = fed.broadcast(blocks, batch, within="federation")
        frozen = fed.share(fed.embed(blocks, batch), batch)
        blocks = fed.descend(blocks, batch, frozen, LocalSteps(self.local_steps, self.step_size))
        return fed.average(blocks, batch, weights=self.weights, within="federation")


def federation() -> tuple[FederatedData, Task]:
    random = np.random.default_rng(4)
    xs = [torch.as_tensor(random.normal(size=(18, 2))) for _ in OWNERS]
    silos = tuple(
        SiloData(name, x, x, ("p", "q"), owners, int(owners.max()) + 1)
        for name, x, owners in zip("ab", xs, OWNERS, strict=True)
    )
    y = torch.as_tensor(random.normal(size=18))
    blocks = tuple(torch.nn.Linear(2, 1, bias=False, dtype=torch.float64) for _ in silos)
    return FederatedData(silos, y, y, "regression", 1, None, GROUPS), Task(blocks, Sum(), Squared(), silos=("a", "b"))


def naive(data: FederatedData, start: list[Tensor], weights: ClientWeights) -> list[Tensor]:
    """Client after client, with the mean over its own samples of the batch; nobody asks which group it is in."""
    now = start
    for r in range(2):
        ids = np.concatenate([BATCHES[0][r], BATCHES[1][r] + 6])
        error = sum(silo.train @ theta for silo, theta in zip(data.silos, now, strict=True)) - data.y_train
        after = []
        for silo, theta in zip(data.silos, now, strict=True):
            total, mean = 0.0, torch.zeros_like(theta)
            for client in range(silo.clients):
                rows = [i for i in ids if silo.owners[i] == client]
                held = int((silo.owners == client).sum())
                weight = {"equal": 1.0, "samples": float(held), "at_work": float(bool(rows))}[weights]
                gradient = (silo.train[rows].T @ error[rows]) / max(1, len(rows))
                mean, total = mean + weight * (theta - 0.3 * gradient), total + weight
            after.append(mean / total)
        now = after
    return now


@pytest.mark.parametrize("weights", ["equal", "samples", "at_work"])
def test_every_client_counts_as_asked(weights: ClientWeights) -> None:
    data, task = federation()
    given = tuple(GivenBatches(of_group[:, None]) for of_group in BATCHES)
    simulator = Simulator(data, task, Together(weights), batches=given, precision=torch.float64, threads=1)
    simulator.run_round()
    simulator.run_round()
    wanted = naive(data, [weights.clone() for weights in task.initial()], weights)
    for mine, theirs in zip(simulator.weights, wanted, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=0, atol=1e-12)


@dataclass(frozen=True)
class Unsaid(Together):
    """The same, without a word of it before."""

    within: ClassVar[Within] = "silo"


@pytest.mark.parametrize("engine", [PartyByParty, Simulator])
def test_a_text_whose_server_has_clients_says_so(engine: type[PartyByParty | Simulator]) -> None:
    """The simulator refuses what parties refuse."""
    made = engine(*federation(), Unsaid("equal"))
    with pytest.raises(ConfigError, match=r"the server knows clients for texts alone that say so: declare `within"):
        made.run_round()


@pytest.mark.parametrize("engine", [PartyByParty, Simulator])
def test_states_of_a_silo_of_one_party_do_not_go_to_the_server(engine: type[PartyByParty | Simulator]) -> None:
    data, task = federation()
    second = replace(data.silos[1], owners=GROUPS, clients=2)  # one client in each group
    data, task = replace(data, silos=(data.silos[0], second)), replace(task, optimiser=Adam(state="averaged"))
    with pytest.raises(ConfigError, match=r"averages clients at the server, and silo 'b' is one party"):
        engine(data, task, Together("equal"))


def in_double(*arguments: Any, **options: Any) -> Simulator:
    return Simulator(*arguments, precision=torch.float64, threads=1, **options)


@pytest.mark.parametrize("weights", ["equal", "samples", "at_work"])
@pytest.mark.parametrize("steps", [1, 2])
def test_party_by_party(weights: ClientWeights, steps: int) -> None:
    case = FederationCase("together", *federation(), Together(weights, steps))
    check_rounds(in_double, case, rounds=3)
