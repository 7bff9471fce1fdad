"""What is carried from round to round in federations of silos."""

from __future__ import annotations

from math import isfinite
from typing import Any

import torch
from torch import Tensor

from crosshatch.errors import ConfigError
from crosshatch.exchanges import Algorithm, Memory, declared
from crosshatch.local.forward import aligned
from crosshatch.protocol.refusals import require_memory
from crosshatch.simulator.vertical.blocks import Blocks
from crosshatch.simulator.vertical.federation import SimulatedFederation
from crosshatch.simulator.vertical.groups import SimulatedServer
from crosshatch.simulator.vertical.memory import pack, unpack
from crosshatch.task.task import Task


class VerticalState:
    """Hubs' blocks, of one vertical federation or of each group."""

    summed = False

    def __init__(self, federation: SimulatedFederation | SimulatedServer, algorithm: Algorithm, task: Task) -> None:
        self.federation, self.task = federation, task
        self.groups = federation.groups if isinstance(federation, SimulatedServer) else (federation,)
        self.fed: Any = federation  # the text's
        self._first = tuple(task.initial())
        self.blocks = (Blocks(self._first),) * len(self.groups)
        self.memory: Memory = ()  # the algorithm's own
        self._remembers = declared(algorithm).remembers

    @property
    def seconds(self) -> float:
        return self.seconds_under_each[0]

    @property
    def seconds_under_each(self) -> tuple[float, ...]:
        """The same under every network."""
        each = zip(*(group.accounts.links.every for group in self.groups), strict=True)
        return tuple(max(links.clocks.now for links in same) for same in each)

    @property
    def strategies(self) -> dict[str, str]:
        """All that were chosen so far, in any group and round."""
        chosen = [group.chosen for group in self.groups]
        return {name: ", ".join(sorted(set().union(*(one.get(name, ()) for one in chosen)))) for name in chosen[0]}

    @property
    def weights(self) -> tuple[Tensor, ...]:
        """The hubs' blocks, averaged over groups where there are any."""
        if isinstance(self.federation, SimulatedServer):
            return self.federation.model(self.blocks)
        return self.blocks[0].base

    def run_round(self, r: int, text: Any) -> None:
        """The algorithm's round, in all groups."""
        for group in self.groups:
            group.begin_round(r)
        grouped = isinstance(self.federation, SimulatedServer)
        before = self.blocks if grouped else self.blocks[0]
        after: Any
        if self._remembers:
            after, self.memory = require_memory(text, text.run_round(self.fed, before, r, self.memory))
        else:
            after = text.run_round(self.fed, before, r)
        wanted: Any = tuple if grouped else Blocks
        if not isinstance(after, wanted):
            raise ConfigError(
                f"run_round of algorithm {type(text).__name__} returned {type(after).__name__}: end it with "
                "`return blocks`, what broadcast, descend or average returned last"
            )
        # Between rounds there is what the hubs hold: steps that were never averaged are lost with their clients.
        pairs = zip(self.groups, after if grouped else (after,), strict=True)
        held = (group.at_clients.at_hubs(blocks).base if blocks.moved else blocks.base for group, blocks in pairs)
        self.blocks = tuple(Blocks(self._with_untrained(base)) for base in held)

    def _with_untrained(self, base: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        """What is not trained is never sent: it stays just as it was, without the rounding of averages."""
        if all(trained is None for trained in self.task.trained):
            return base
        return tuple(
            weights if trained is None else first.index_copy(0, trained, weights.index_select(0, trained))
            for first, weights, trained in zip(self._first, base, self.task.trained, strict=True)
        )

    def align(self) -> None:
        """The blocks; what groups have in common stays common. Memories of codecs are written in place."""
        after = {id(blocks.base): tuple(map(aligned, blocks.base)) for blocks in self.blocks}
        self.blocks = tuple(Blocks(after[id(blocks.base)]) for blocks in self.blocks)

    def broken(self) -> str | None:
        """The first block with a NaN or an infinity."""
        if isfinite(torch.cat(self.weights).sum().item()):
            return None
        for silo, weights in zip(self.task.names, self.weights, strict=True):
            if not isfinite(weights.sum().item()):
                return f"the block of silo '{silo}' is"
        return None

    def communications(self, messages: int) -> None:
        """Messages are of many kinds."""

    def describe(self) -> None:
        """There is no graph."""

    def snapshot(self) -> dict[str, Tensor]:
        """Blocks and clocks of all groups; blocks that groups have in common once, `holders` says which."""
        ids = [id(blocks.base) for blocks in self.blocks]
        holders = [ids.index(one) for one in ids]
        tensors: dict[str, Tensor] = {"holders": torch.tensor(holders)}
        for g, (group, blocks) in enumerate(zip(self.groups, self.blocks, strict=True)):
            if holders[g] == g:
                tensors |= {f"block.{g}.{j}": weights for j, weights in enumerate(blocks.base)}
            for n, links in enumerate(group.accounts.links.every):
                tensors[_hubs(g, n)] = torch.as_tensor(links.clocks.hubs.copy())
            tensors |= {f"codec.{g}.{name}": memory for name, memory in group.on_the_way.channels.snapshot().items()}
            if group.optimising is not None:
                tensors |= {f"optimiser.{g}.{name}": state for name, state in group.optimising.snapshot().items()}
        return tensors | pack(self.memory)

    def restore(self, tensors: dict[str, Tensor]) -> None:
        """Blocks and clocks of all groups."""
        restored: list[Blocks] = []
        holders = tensors["holders"].tolist() if "holders" in tensors else list(range(len(self.groups)))
        for g, (group, blocks) in enumerate(zip(self.groups, self.blocks, strict=True)):
            if holders[g] == g:
                base = tuple(tensors[f"block.{g}.{j}"].to(like).clone() for j, like in enumerate(blocks.base))
                assert [b.shape for b in base] == [like.shape for like in blocks.base]
                restored.append(Blocks(base))
            else:
                restored.append(restored[holders[g]])
            for n, links in enumerate(group.accounts.links.every):
                if f"computing.{g}" in tensors and n:  # of an earlier version: computing, and hubs' clocks by then
                    computing, then = tensors[f"computing.{g}"]
                    tensors = {**tensors, _hubs(g, n): tensors[_hubs(g, 0)] + computing - then}
                links.clocks.hubs = tensors[_hubs(g, n)].numpy().copy()
            group.on_the_way.channels.restore(_below(f"codec.{g}.", tensors))
            if group.optimising is not None:
                group.optimising.restore(_below(f"optimiser.{g}.", tensors))
        self.blocks = tuple(restored)
        self.memory = unpack(tensors, self.task.initial()[0].device)


def _hubs(group: int, network: int) -> str:
    return f"hubs.{group}.{network}" if network else f"hubs.{group}"


def _below(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}
