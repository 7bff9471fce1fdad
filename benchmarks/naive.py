"""TDCD as research code writes it: a module and an optimiser a client, one client after the other."""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn

from benchmarks.cases import BATCH
from crosshatch.data.federated import FederatedData
from crosshatch.protocol.batches import SeededBatches
from crosshatch.task.task import Task


class Naive:
    """Rounds of one exchange and `steps` local steps; messages are neither counted nor sent."""

    def __init__(self, data: FederatedData, task: Task, *, steps: int) -> None:
        self.data, self.loss, self.steps = data, task.loss, steps
        self.hubs = [copy.deepcopy(block) for block in task.blocks]
        self.clients = [
            [copy.deepcopy(hub) for _ in range(silo.clients)] for hub, silo in zip(self.hubs, data.silos, strict=True)
        ]
        self.owners = [torch.as_tensor(silo.owners) for silo in data.silos]
        self.batches, self.round = SeededBatches(1), 0

    def run_round(self) -> None:
        """Broadcast, exchange embeddings, local steps, average."""
        ids = torch.as_tensor(self.batches.ids(self.round, 0, BATCH, len(self.data.y_train)))
        self.round += 1
        for hub, clients in zip(self.hubs, self.clients, strict=True):
            for client in clients:
                client.load_state_dict(hub.state_dict())
        mine = [
            [torch.nonzero(owner[ids] == k).squeeze(1) for k in range(len(clients))]
            for owner, clients in zip(self.owners, self.clients, strict=True)
        ]
        embeddings = [self._embed(j, ids, mine[j]) for j in range(len(self.hubs))]
        total = torch.stack(embeddings).sum(0)
        for j, clients in enumerate(self.clients):
            rest = total - embeddings[j]
            for client, rows in zip(clients, mine[j], strict=True):
                if len(rows):
                    self._train(client, self.data.silos[j].train[ids[rows]], rest[rows], self.data.y_train[ids[rows]])
            self._average(self.hubs[j], clients)

    def _embed(self, silo: int, ids: Tensor, mine: list[Tensor]) -> Tensor:
        """The exchange: every client runs its block on its own samples."""
        pieces = []
        with torch.no_grad():
            for client, rows in zip(self.clients[silo], mine, strict=True):
                if len(rows):
                    pieces.append(client(self.data.silos[silo].train[ids[rows]]))
        sorted_by_client = torch.cat(pieces)
        out = torch.empty_like(sorted_by_client)
        out[torch.cat(mine)] = sorted_by_client
        return out

    def _train(self, client: nn.Module, x: Tensor, rest: Tensor, y: Tensor) -> None:
        optimiser = torch.optim.SGD(client.parameters(), lr=0.1)
        for _ in range(self.steps):
            optimiser.zero_grad()
            torch.autograd.backward(self.loss.value(client(x) + rest, y).mean())
            optimiser.step()

    @staticmethod
    def _average(hub: nn.Module, clients: list[nn.Module]) -> None:
        states = [client.state_dict() for client in clients]
        hub.load_state_dict({name: torch.stack([s[name] for s in states]).mean(0) for name in states[0]})
