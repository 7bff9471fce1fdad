"""The states of an optimiser, client by client, carried from step to step and from round to round.

They are "reset" at the start of every round, "kept" by each client, or "averaged" as the blocks are: clients send their
states to the hub with their blocks, and get the average with the next broadcast.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from crosshatch.local.problem import Problem
from crosshatch.protocol.batches import Ids
from crosshatch.simulator.passes import Passes
from crosshatch.simulator.vertical.averaging import Solver, outcomes
from crosshatch.simulator.vertical.batch import Batch
from crosshatch.task.optimisers import Optimiser, state_size

_CLIENTS, _HUB = "clients", "hub"


@dataclass
class Optimising:
    """States of a federation; a silo that is `alone` is one party, so that its hub's state is its client's."""

    optimiser: Optimiser
    clients: tuple[int, ...]
    alone: frozenset[int]
    like: tuple[Tensor, ...]  # each silo's block (p,)

    def __post_init__(self) -> None:
        """All states begin at zero: by silo those of its clients (clients, s), and where hubs have some its hub's."""
        zeros = [one.new_zeros(state_size(self.optimiser, len(one))) for one in self.like]
        self._at_clients = {j: one.repeat(self.clients[j], 1) for j, one in enumerate(zeros)}
        self._at_hubs = {j: one for j, one in enumerate(zeros) if self.averaged and j not in self.alone}

    @property
    def averaged(self) -> bool:
        """Whether hubs have states too."""
        return self.optimiser.state == "averaged"

    def begin_round(self) -> None:
        """States that are not to be carried over are zero again."""
        if self.optimiser.state == "reset":
            for states in self._at_clients.values():
                states.zero_()

    def of_hub(self, silo: int) -> Tensor:
        """A hub's state (s,), to be written into."""
        return self._at_clients[silo][0] if silo in self.alone else self._at_hubs[silo]

    def states(self, silo: int, clients: Ids) -> Tensor:
        """Those of some clients (clients, s)."""
        return self._at_clients[silo].index_select(0, self._places(silo, clients))

    def _places(self, silo: int, clients: Ids) -> Tensor:
        return torch.as_tensor(clients, device=self.like[silo].device)

    def _set_states(self, silo: int, clients: Ids, states: Tensor) -> None:
        self._at_clients[silo].index_copy_(0, self._places(silo, clients), states)

    def solve(self, problems: Sequence[Problem], solver: Solver, passes: Passes) -> None:
        """Steps are taken at once, since later ones begin with the states that they lead to."""
        outcomes(problems, solver, passes)
        for one in problems:
            self._set_states(one.silo, one.at_work, passes.blocks[id(one)][2])

    def broadcast(self, batch: Batch) -> None:
        """Clients at work get their hub's state with its block."""
        for j, state in self._at_hubs.items():
            self._set_states(j, batch.clients[j], state.expand(len(batch.clients[j]), -1))

    def average(self, batch: Batch, at_work: Mapping[int, Tensor], idle: Mapping[int, float]) -> None:
        """Hubs average the states of their clients at work as they do the blocks; who is idle counts with the hub's."""
        for j, weights in at_work.items():
            if j in self._at_hubs:
                sent = self.states(j, batch.clients[j])
                self._at_hubs[j] = (weights.to(sent) @ sent).add_(self._at_hubs[j], alpha=idle[j])

    def snapshot(self) -> dict[str, Tensor]:
        states = {_CLIENTS: self._at_clients, _HUB: self._at_hubs}
        return {f"{whose}.{j}": state.clone() for whose, of in states.items() for j, state in of.items()}

    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        """Go on from a snapshot, whatever was computed since; older ones lack states that are zero."""
        self.__post_init__()
        for name, tensor in tensors.items():
            whose, silo = name.split(".")
            of = self._at_clients if whose == _CLIENTS else self._at_hubs
            of[int(silo)] = tensor.to(self.like[int(silo)]).clone()


def average_hubs(members: Sequence[Optimising | None], shares: Sequence[Sequence[float]]) -> None:
    """The same hubs of several groups get the average of their states, where those are averaged; `shares` by silo."""
    groups = [one for one in members if one is not None and one.averaged]
    for j in range(len(groups[0].clients) if groups else 0):
        held = [one.of_hub(j) for one in groups]
        parts = (state * share for state, share in zip(held, shares[j], strict=True))
        mean = sum(parts, start=torch.zeros_like(held[0]))
        for state in held:
            state.copy_(mean)
