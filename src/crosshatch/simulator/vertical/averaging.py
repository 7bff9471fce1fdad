"""How much each client counts in its silo's average, and what arrives of the blocks where a codec stands in between."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from torch import Tensor

from crosshatch.simulator.vertical.batch import Batch
from crosshatch.simulator.vertical.coding import Coding
from crosshatch.simulator.vertical.values import Blocks


def with_idle(total: Tensor, start: Tensor, idle: float) -> Tensor:
    """A weighted sum (p,), and the clients not at work with the block they would have started from; in place."""
    return total.add_(start, alpha=idle) if idle > 1e-9 else total  # what is left of 1 may be rounding


def coded_sums(
    blocks: Blocks, batch: Batch, shares: Mapping[int, Tensor], coding: Coding, clients: Sequence[int]
) -> dict[int, Tensor]:
    """Weighted sums of what arrives of the clients' blocks: each sends how far it moved from the block it got."""
    assert blocks.moved is not None
    sums = {}
    for j, rows in blocks.moved.rows().items():
        if not coding.travels("average", j):
            sums[j] = shares[j].to(rows) @ rows
            continue
        start, ids = blocks.at_clients(j), batch.clients[j]
        where = blocks.moved.problems[j].task.trained[j]
        moves = coding.vectors("average", str(j), rows - start, ids, clients[j], round=batch.round, where=where)
        sums[j] = shares[j].to(rows) @ (moves + start)
    return sums
