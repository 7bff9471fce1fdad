"""JFL: every selected device and its hospital train a pair of their own; all pairs are averaged at the server.

The baseline of the HSGD paper (section VII-A), after Yu et al.'s joint federated learning: no local aggregation, so the
hospital keeps one block and one head for each selected device.
theta_0, theta_1: the pair's head and hospital block   theta_2: the device's block   eta: step_size   alpha: fraction
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from crosshatch.exchanges import Batch, Blocks, Embeddings, Federation, Frozen, LocalSteps, Planned, Within
from crosshatch.schedules import Schedule, rate


@dataclass(frozen=True)
class JFL(Planned):
    """Joint federated learning: `H(Q) V(Q)`, one pair per device; Q = 1 in the paper.

    >>> str(JFL().topology)
    'H(1) V(1)'
    """

    local_steps: int = 1
    step_size: Schedule | float = 0.01
    fraction: float = 1.0

    shape = "H(Q) V(Q)"
    pairs = True  # every device has a partner at its hospital: the hospital's silo is divided as the devices are
    weights = "at_work"
    within: ClassVar[Within] = "federation"  # all pairs are averaged at the server, none at an edge node

    def run_round(self, fed: Federation[Blocks, Batch, Embeddings, Frozen], blocks: Blocks, r: int) -> Blocks:
        """One round of every selected pair, and the average of all pairs."""
        batch = fed.select(self.fraction, round=r)
        blocks = fed.broadcast(blocks, batch, within=self.within)
        embeddings = fed.embed(blocks, batch)
        frozen = fed.exchange(embeddings, batch)
        blocks = fed.descend(blocks, batch, frozen, LocalSteps(self.local_steps, rate(self.step_size, r)))
        return fed.average(blocks, batch, weights=self.weights, within=self.within)
