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


def weighted_sums(
    blocks: Blocks, batch: Batch, shares: Mapping[int, Tensor], coding: Coding, clients: Sequence[int]
) -> dict[int, Tensor]:
    """By silo the weighted sum of what arrives of its clients' blocks, `clients` of them in each silo."""
    assert blocks.moved is not None
    if "average" not in coding.codecs:
        return blocks.moved.sums(dict(shares))
    sums = {}
    for j, rows in blocks.moved.rows().items():
        trained, ids = blocks.moved.problems[j].task.trained[j], batch.clients[j]
        arrived = coding.blocks(rows, blocks.at_clients(j), j, ids, clients[j], round=batch.round, where=trained)
        sums[j] = shares[j].to(rows) @ arrived
    return sums
