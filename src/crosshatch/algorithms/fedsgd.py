"""FedSGD: one gradient step at every party, then an exchange.

Liu et al., arXiv:1912.11187, Algorithm 1.   theta_k: block   H_-k: frozen   eta: step_size   S: batch
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from crosshatch.exchanges import Batch, Blocks, DrawsBatches, Embeddings, Federation, Frozen, LocalSteps
from crosshatch.schedules import Schedule, rate
from crosshatch.theory import theorem_names


@dataclass(frozen=True)
class FedSGD(DrawsBatches):
    """Vertical stochastic gradient descent: `V(1)`, one client per silo.

    >>> str(FedSGD(batch_size=64).topology)
    'V(1)'
    """

    step_size: Schedule | float = 0.1
    batch_size: int | None = None

    local_steps: ClassVar[int] = 1
    shape = "V(Q)"
    encrypts = True
    auto = ("step_size",)
    proved_by = (theorem_names.FEDBCD,)  # whose case of one local step it is

    def run_round(self, fed: Federation[Blocks, Batch, Embeddings, Frozen], blocks: Blocks, r: int) -> Blocks:
        """One iteration j of Algorithm 1."""
        batch = fed.draw_batch(self.batch_size, round=r)  # "Randomly sample S"
        embeddings = fed.embed(blocks, batch)
        # Exchange: with the label's holder where equation (2) holds, with everybody otherwise
        frozen = fed.exchange(embeddings, batch)
        return fed.descend(blocks, batch, frozen, LocalSteps(1, rate(self.step_size, r)))
