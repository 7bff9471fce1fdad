"""What stacked copies are made of."""

from __future__ import annotations

from dataclasses import dataclass

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
