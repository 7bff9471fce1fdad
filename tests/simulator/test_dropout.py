"""A client alone, with its own rows and the run's seed, has the simulator's embeddings and blocks."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from crosshatch.algorithms.hsgd import HSGD
from crosshatch.algorithms.tdcd import TDCD
from crosshatch.algorithms.tiered import Tiered
from crosshatch.data.federated import FederatedData, SiloData
from crosshatch.exchanges import LocalSteps
from crosshatch.protocol.batches import GivenBatches
from crosshatch.schedules import Constant
from crosshatch.seeds import torch_seed
from crosshatch.simulator.simulator import Simulator
from crosshatch.simulator.vertical.averaging import outcomes
from crosshatch.simulator.vertical.blocks import Blocks
from crosshatch.simulator.vertical.embedding import Embeddings
from crosshatch.simulator.vertical.federation import SimulatedFederation
from crosshatch.simulator.vertical.groups import SimulatedServer
from crosshatch.task.fusion import Sum
from crosshatch.task.losses import Squared
from crosshatch.task.task import Task
from crosshatch.trees import flatten

Ids = npt.NDArray[np.int64]
SEED, ROUND, RATE = 11, 2, 0.1
SAMPLES, CLIENTS, WHO = 40, 5, 3
OWNERS = np.random.default_rng(0).permutation(np.arange(SAMPLES) % CLIENTS)


@pytest.fixture(autouse=True)
def threads_as_before() -> Iterator[None]:
    """Simulators set torch's threads."""
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def task() -> Task:
    """Silo a drops half of its hidden units and a fifth of its columns, silo b is linear."""
    with torch.random.fork_rng():
        torch.manual_seed(1)
        dropping = nn.Sequential(nn.Dropout(0.2), nn.Linear(4, 6), nn.Tanh(), nn.Dropout(0.5), nn.Linear(6, 1))
        return Task((dropping.double(), nn.Linear(3, 1).double()), Sum(), Squared())


def data(groups: Ids | None = None) -> FederatedData:
    """Silo a has five clients, silo b two; in groups, as many in each."""
    rng = np.random.default_rng(4)
    x, y = torch.as_tensor(rng.normal(size=(SAMPLES, 7))), torch.as_tensor(rng.normal(size=SAMPLES))
    members = (OWNERS, np.arange(SAMPLES) % 2)
    if groups is not None:
        members = (OWNERS + CLIENTS * groups, members[1] + 2 * groups)
    silos = tuple(
        SiloData(name, part, part, (name,) * part.shape[1], owners, int(owners.max()) + 1)
        for name, part, owners in zip("ab", (x[:, :4], x[:, 4:]), members, strict=True)
    )
    return FederatedData(silos, y, y, "regression", 1, None, groups)


class Client:
    """One client of silo a as a process of its own: its number, its rows, the task's modules and the seed."""

    def __init__(self, number: int, *, seed: int = SEED, owners: Ids = OWNERS, round: int = ROUND) -> None:
        self.number, self.seed, self.owners, self.round = number, seed, owners, round
        self.block, self.other = (copy.deepcopy(block) for block in task().blocks)
        self.silos, self.y = [silo.train for silo in data().silos], data().y_train

    def mine(self, ids: Ids) -> Tensor:
        """Those of a batch that it holds, in the order of their numbers."""
        return torch.as_tensor(np.sort(ids[self.owners[ids] == self.number]))

    def outputs(self, rows: Tensor, step: int) -> Tensor:
        """Its block's for some rows, with the mask of a local step."""
        with torch.random.fork_rng():
            torch.manual_seed(torch_seed(self.seed, "dropout", self.round, step, 0, self.number))
            return self.block(self.silos[0][rows])  # type: ignore[no-any-return]

    def work(self, parts: list[Ids], steps: int) -> Tensor:
        """Its block's vector after some local steps, the s-th on part s and so on again."""
        for step in range(steps):
            rows = self.mine(parts[step % len(parts)])
            if len(rows) == 0:
                continue
            scores = self.outputs(rows, step) + self.other(self.silos[1][rows]).detach()
            loss = 0.5 * functional.mse_loss(scores[:, 0], self.y[rows])
            gradients = torch.autograd.grad(loss, list(self.block.parameters()))
            with torch.no_grad():
                for parameter, gradient in zip(self.block.parameters(), gradients, strict=True):
                    parameter.sub_(gradient, alpha=RATE)
        return flatten(self.block)


class Simulated:
    """A round of TDCD up to the local steps in the simulator, for the same batch."""

    def __init__(self, parts: list[Ids], steps: int, threads: int, strategy: str = "auto") -> None:
        given = GivenBatches(np.array([[np.zeros_like(part) for part in parts]] * ROUND + [parts]))
        simulator = Simulator(
            data(), task(), TDCD(steps, Constant(RATE)), seed=SEED, batches=given, threads=threads,
            strategy=strategy, precision=torch.float64,  # type: ignore[arg-type]
        )  # fmt: skip
        fed = simulator.federation
        assert isinstance(fed, SimulatedFederation)
        self.parts, self.fed = parts, fed
        self.batch = fed.draw_batch(len(parts[0]), round=ROUND, parts=len(parts))
        start = fed.broadcast(Blocks(simulator.weights), self.batch)
        self.embeddings: Embeddings = fed.embed(start, self.batch)
        frozen = fed.exchange(self.embeddings, self.batch)
        self.blocks: Blocks = fed.descend(start, self.batch, frozen, LocalSteps(steps, RATE))

    def sent(self, part: int) -> Tensor:
        """What client 3 sent about a part."""
        ids = self.batch.parts[part]
        order = np.argsort(ids)
        rows = self.embeddings.values[0][part][torch.as_tensor(order)]
        return rows[torch.as_tensor(OWNERS[ids[order]] == WHO)]

    def block(self) -> Tensor:
        """Client 3's block after its steps."""
        (blocks,) = outcomes(self.blocks.moved[0], self.fed.solver, self.fed.passes)
        return blocks[self.batch.clients[0].tolist().index(WHO)]


def batches(order: str, parts: int) -> list[Ids]:
    """Samples of a round: "idle" has none of client 1's, so that 3 is third of those at work."""
    rng = np.random.default_rng(8)
    drawn = [rng.choice(SAMPLES, 25, replace=False) for _ in range(parts)]
    if order == "shuffled":
        drawn = [rng.permutation(ids) for ids in drawn]
    if order == "idle":
        drawn = [np.where(OWNERS[ids] == 1, -1, ids) for ids in drawn]
        size = min(int((ids >= 0).sum()) for ids in drawn)
        drawn = [ids[ids >= 0][:size] for ids in drawn]
        kept = [ids[OWNERS[ids] == WHO] for ids in drawn]
        assert all(len(mine) for mine in kept)
    return drawn


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("order", ["drawn", "shuffled", "idle"])
@pytest.mark.parametrize(("steps", "parts"), [(1, 1), (3, 1), (3, 3), (3, 2)])
def test_a_client_alone(threads: int, order: str, steps: int, parts: int) -> None:
    drawn = batches(order, parts)
    simulated, client = Simulated(drawn, steps, threads), Client(WHO)
    for s, ids in enumerate(drawn):
        torch.testing.assert_close(simulated.sent(s), client.outputs(client.mine(ids), s), rtol=0, atol=1e-12)
    torch.testing.assert_close(simulated.block(), client.work(drawn, steps), rtol=0, atol=1e-12)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("strategy", ["auto", "loop"])
@pytest.mark.parametrize("steps", [1, 3])
def test_the_average_is_that_of_clients_alone(threads: int, strategy: str, steps: int) -> None:
    drawn = batches("drawn", 1)
    simulated = Simulated(drawn, steps, threads, strategy)
    (found, _) = simulated.fed.average(simulated.blocks, simulated.batch).base
    wanted = torch.stack([Client(k).work(drawn, steps) for k in range(CLIENTS)]).mean(0)
    torch.testing.assert_close(found, wanted, rtol=0, atol=1e-12)


def test_others_do_not_matter() -> None:
    """Bit for bit the same numbers of client 3, whoever else has samples in the batch, and in whatever order."""
    (drawn,) = batches("drawn", 1)
    for steps in (1, 3):
        first = Simulated([drawn], steps, 1)
        others_idle = drawn[np.isin(OWNERS[drawn], [WHO, 4])]
        for ids in (np.flip(drawn), others_idle):
            again = Simulated([ids.copy()], steps, 1)
            assert torch.equal(first.sent(0), again.sent(0))
            assert torch.equal(first.block(), again.block())


def test_a_group_has_a_seed_of_its_own() -> None:
    groups = (np.arange(SAMPLES) >= SAMPLES // 2).astype(np.int64)
    simulator = Simulator(
        data(groups), task(), HSGD(2, 2, Constant(RATE)), seed=SEED, threads=1, precision=torch.float64
    )
    fed = simulator.federation
    assert isinstance(fed, SimulatedServer)
    batch = fed.draw_batch(None, round=ROUND)
    blocks = fed.broadcast((Blocks(simulator.weights),) * 2, batch)
    embeddings = fed.embed(blocks, batch)
    for g in (0, 1):
        client = Client(WHO, seed=torch_seed(SEED, "codecs", g))
        everybody = np.flatnonzero(groups == g)
        found = embeddings[g].values[0][0][torch.as_tensor(OWNERS[everybody] == WHO)]
        torch.testing.assert_close(found, client.outputs(client.mine(everybody), 0), rtol=0, atol=1e-12)


def test_steps_between_averages_are_counted_on() -> None:
    """With H(1) below V(2) the second step of a round has the mask of step 1; one client, so that averages are it."""
    whole = data()
    alone = np.zeros(SAMPLES, dtype=np.int64)
    silo = replace(whole.silos[0], owners=alone, clients=1)
    one = replace(whole, silos=(silo, whole.silos[1]))
    algorithm = Tiered("V(2) H(1)", Constant(RATE))
    simulator = Simulator(one, task(), algorithm, seed=SEED, threads=1, precision=torch.float64)
    simulator.run_round()
    wanted = Client(0, owners=alone, round=0).work([np.arange(SAMPLES)], 2)
    torch.testing.assert_close(simulator.weights[0], wanted, rtol=0, atol=1e-12)
