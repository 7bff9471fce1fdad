"""What clients of the head's holder compute with the head they have: within a round each may have one of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

from crosshatch.simulator.vertical.batch import Batch, Holdings


def with_own_heads(
    compute: Callable[..., Tensor], heads: Tensor | None, rows: Sequence[Tensor], batch: Batch, holder: int, part: int
) -> Tensor:
    """`compute(head, *rows)` for rows (n, ...) of a part in the batch's order, each with the head of who holds it.

    `heads` is one for all (h,), one for each of the holder's clients at work (clients, h), or None for a sum.
    """
    if heads is None or heads.dim() == 1:
        return compute(heads, *rows)
    every = [torch.as_tensor(index) for index in _rows_by_client(batch.held[holder][part])]
    index = torch.cat(every)
    pieces = [
        compute(head, *(one.index_select(0, mine) for one in rows)) for head, mine in zip(heads, every, strict=True)
    ]
    joined = torch.cat(pieces)
    return torch.empty_like(joined).index_copy_(0, index, joined)


def _rows_by_client(held: Holdings) -> list[np.ndarray[tuple[int], np.dtype[np.int64]]]:
    """For each client at work the places of its rows in the batch."""
    order = np.arange(held.counts.sum()) if held.order is None else held.order.cpu().numpy()
    return np.split(order, np.cumsum(held.counts)[:-1])
