"""HSGD: groups of a hospital and its patients' devices, joined vertically inside and averaged above.

Yu et al., *Communication-Efficient Hybrid Federated Learning for E-health with Horizontal and Vertical Data
Partitioning*, Algorithm 1.   theta_0: head   theta_1: hospital's block   theta_2: devices' block
P: global_steps   Q: local_steps   eta: step_size   alpha: fraction   A_m: selected devices

Between two exchanges the hospital updates its block and the head with fresh values and stale device embeddings; a
device uses the head and the hospital's embedding as received and its own fresh block.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

from crosshatch.exchanges import Batch, Blocks, Embeddings, Federation, Frozen, LocalSteps, Planned
from crosshatch.exchanges.checks import check_global_steps
from crosshatch.schedules import Schedule, rate
from crosshatch.theory import theorem_names


@dataclass(frozen=True)
class HSGD(Planned):
    """Hybrid stochastic gradient descent: `H(P) V(Q) H(Q)` with a trained head.

    >>> str(HSGD(global_steps=20, local_steps=10).topology)
    'H(20) V(10) H(10)'
    """

    global_steps: int = 10
    local_steps: int = 10
    step_size: Schedule | float = 0.01
    fraction: float = 1.0

    shape = "H(P) V(Q) H(Q)"
    weights = "at_work"
    returns_blocks = True
    auto = ("global_steps", "local_steps", "step_size")
    proved_by = (theorem_names.HSGD,)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_global_steps(self.global_steps, self.local_steps)

    def with_interval(self, steps: int) -> Self:
        """Strategy 1: P is Q."""
        return replace(self, global_steps=steps, local_steps=steps)

    def run_round(self, fed: Federation[Blocks, Batch, Embeddings, Frozen], blocks: Blocks, r: int) -> Blocks:
        """The Q iterations from one local aggregation to the next."""
        batch = fed.select(self.fraction, round=r)  # line 13: the devices A_m and their samples
        blocks = fed.broadcast(blocks, batch)  # line 15: the edge's block to the devices
        embeddings = fed.embed(blocks, batch)  # line 17
        # lines 17-21: embeddings both ways, the head to the devices; derivatives where the hospital alone has labels
        frozen = fed.exchange(embeddings, batch)
        local = LocalSteps(self.local_steps, rate(self.step_size, r))
        blocks = fed.descend(blocks, batch, frozen, local)  # lines 22-26
        blocks = fed.average(blocks, batch, weights=self.weights)  # line 12 of the next interval, equation (1)
        if (r + 1) % (self.global_steps // self.local_steps) == 0:
            blocks = fed.average_groups(blocks, round=r)  # lines 4-9, equation (2)
        return blocks
