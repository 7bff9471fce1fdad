"""What stacked copies are made of."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from crosshatch.local.layers import Chain
from crosshatch.local.stacked.convolved import Images
from crosshatch.local.stacked.recurrent import Cell


@dataclass(frozen=True)
class Shapes:
    """What a problem's copies are made of: layers in front of the block's chain, if there are any, and the head's."""

    front: Cell | Images | None
    block: Chain
    head: Chain  # empty for a sum, and where derivatives are received
    holds_head: bool

    @cached_property
    def size_in_front(self) -> int:
        """Numbers in front of the block's chain."""
        return 0 if self.front is None else self.front.size
