"""What clients of the head's holder compute with the head they have: within a round each may have one of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from crosshatch.simulator.vertical.batch import Batch


def with_own_heads(
    compute: Callable[..., Tensor], heads: Tensor | None, rows: Sequence[Tensor], batch: Batch, holder: int, part: int
) -> Tensor:
    """`compute(head, *rows)` for rows (n, ...) of a part in the batch's order, each with the head of who holds it.

    `heads` is one for all (h,), one for each of the holder's clients at work (clients, h), or None for a sum.
    """
    if heads is None or heads.dim() == 1:
        return compute(heads, *rows)
    sorted_rows = [batch.by_client(holder, part, one) for one in rows]
    counts = batch.held[holder][part].counts.tolist()
    pieces = zip(heads, *(torch.split(one, counts) for one in sorted_rows), strict=True)
    return batch.as_drawn(holder, part, torch.cat([compute(*piece) for piece in pieces]))
