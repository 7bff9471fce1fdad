"""Central training: the same model on the same batches in one place, the yardstick of every comparison.

All silos' columns lie on one machine, so nothing is counted: a round is Q plain gradient steps on all blocks together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from crosshatch.exchanges import Batch, Blocks, DrawsBatches, Embeddings, Federation, Frozen, LocalSteps
from crosshatch.schedules import Schedule, rate


@dataclass(frozen=True)
class Central(DrawsBatches):
    """Stochastic gradient descent with all columns and samples at hand.

    >>> Central(batch_size=64).central
    True
    """

    local_steps: int = 1
    step_size: Schedule | float = 0.1
    batch_size: int | None = None
    batches: Literal["reused", "fresh"] = "reused"

    central = True  # one machine: the engine counts no messages and all samples form one client
    shape = "V(1)"  # formally an exchange every step; on one machine it is free

    def run_round(self, fed: Federation[Blocks, Batch, Embeddings, Frozen], blocks: Blocks, r: int) -> Blocks:
        """Q steps of gradient descent on all blocks: each with the others' current embeddings, so the full gradient."""
        for q in range(self.local_steps):
            batch = fed.draw_batch(self.batch_size, round=r, first=q if self.fresh_batches else 0)
            current = fed.exchange(fed.embed(blocks, batch), batch)
            blocks = fed.descend(blocks, batch, current, LocalSteps(1, rate(self.step_size, r)))
        return blocks
