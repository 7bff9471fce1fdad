"""FedAvg (local SGD): one silo, its clients train by themselves and are averaged every Q steps.

McMahan et al., arXiv:1602.05629, Algorithm 1, with the round's samples drawn from the shared seed and shared out by who
holds them.   w: block   E, B: local_steps, batch_size   eta: step_size
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from crosshatch.exchanges import Batch, Blocks, ClientWeights, DrawsBatches, Embeddings, Federation, Frozen, LocalSteps
from crosshatch.schedules import Schedule, rate


@dataclass(frozen=True)
class FedAvg(DrawsBatches):
    """Federated averaging inside one silo: `H(Q)`.

    `weights`: "samples" weighs clients by the samples they hold (FedAvg), "equal" does not (local SGD), "at_work" only
    counts those with samples in the round. `batches`: one set of samples per round, or a fresh one each step.

    >>> str(FedAvg(local_steps=10).topology)
    'H(10)'
    """

    local_steps: int = 10
    step_size: Schedule | float = 0.1
    batch_size: int | None = None
    batches: Literal["reused", "fresh"] = "fresh"
    weights: ClientWeights = "samples"

    shape = "H(Q)"
    returns_blocks = True

    @property
    def fresh_batches(self) -> bool:
        """As the setting says; all samples are the same ones at every step."""
        return self.batches == "fresh" and self.batch_size is not None

    def run_round(self, fed: Federation[Blocks, Batch, Embeddings, Frozen], blocks: Blocks, r: int) -> Blocks:
        """One round t of Algorithm 1."""
        parts = self.local_steps if self.fresh_batches else 1
        batch = fed.draw_batch(self.batch_size, round=r, parts=parts)
        blocks = fed.broadcast(blocks, batch)
        alone = fed.exchange(fed.embed(blocks, batch), batch)  # one silo: nobody to tell, no message
        blocks = fed.descend(blocks, batch, alone, LocalSteps(self.local_steps, rate(self.step_size, r)))
        return fed.average(blocks, batch, weights=self.weights)
