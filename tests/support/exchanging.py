"""How a round begins, up to its embeddings, and a plain step."""

from __future__ import annotations

from typing import Any

from crosshatch.exchanges import LocalSteps

STEP = LocalSteps(2, 0.3)


def begin(fed: Any, blocks: Any, r: int) -> Any:
    batch = fed.draw_batch(8, round=r)
    blocks = fed.broadcast(blocks, batch)
    return batch, blocks, fed.embed(blocks, batch)
