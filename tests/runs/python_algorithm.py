"""An algorithm that a user has in a file and uses from Python."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from crosshatch import Topology
from crosshatch.exchanges import LocalSteps


@dataclass(frozen=True)
class FromPython:
    """FedBCD, without any declaration."""

    local_steps: int = 3
    step_size: float = 0.1
    batch_size: int | None = None

    @property
    def topology(self) -> Topology:
        return Topology.parse(f"V({self.local_steps})")

    def run_round(self, fed: Any, blocks: Any, r: int) -> Any:
        batch = fed.draw_batch(self.batch_size, round=r)
        frozen = fed.share(fed.embed(blocks, batch), batch)
        return fed.descend(blocks, batch, frozen, LocalSteps(self.local_steps, self.step_size))
