"""A branch's own half: it stands between a hub and its clients, or between two tiers of branches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final

from crosshatch.exchanges import ClientWeights, Within
from crosshatch.parties.holdings.agreed import Batch
from crosshatch.parties.holdings.values import Blocks
from crosshatch.parties.roles.role import Role
from crosshatch.parties.roles.tree import Node
from crosshatch.protocol.message_contents import Call


@final
@dataclass(kw_only=True)
class BranchRole(Role):
    """Blocks and decisions pass through it; of embeddings, heads and derivatives it sees nothing."""

    silo: int
    node: Node

    def state(self) -> dict[str, Any]:
        """Counters and codec memories."""
        return {**super().state(), "channels": self.node.channels.snapshot()}

    def load(self, state: Mapping[str, Any]) -> None:
        super().load(state)
        self.node.channels.restore(state["channels"])

    def _broadcast(self, blocks: Blocks, batch: Batch, within: Within, depth: int, call: Call) -> Blocks:
        return blocks if within == "federation" else self.node.broadcast(blocks, batch, depth, call)

    def _average(
        self, blocks: Blocks, batch: Batch, weights: ClientWeights, within: Within, depth: int, call: Call
    ) -> Blocks:
        if within == "federation" or self.silo not in blocks.moved:
            return self._rest(blocks)
        return self.node.average(blocks, batch, weights, depth, call)

    def _decide(self, value: float, by: int, call: Call) -> float:  # noqa: ARG002
        return self.node.pass_decision(call)
