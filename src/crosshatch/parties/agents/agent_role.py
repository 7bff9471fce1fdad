"""What agents' roles have in common."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from crosshatch.parties.beforehand import Beforehand
from crosshatch.parties.post import Post


@dataclass(kw_only=True)
class AgentRole:
    """Its state beside the text's values are counters alone."""

    post: Post
    beforehand: Beforehand

    def begin_round(self, round: int) -> None:
        """Nothing is counted by round: an agent's messages are told apart by token or neighbour."""

    def state(self) -> dict[str, Any]:
        return {"meter": self.post.meter.snapshot()}

    def load(self, state: Mapping[str, Any]) -> None:
        self.post.meter.load(state["meter"])
