"""What parties have settled before the first round: it follows from all blocks and data together, which nobody has."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Beforehand:
    """`widths` are those of all silos' embeddings; with `draws` some block draws random numbers.

    Of agents: whether all blocks' outputs are `linear` in their parameters, whether there are outputs at the start that
    the server `gathers`, and the `steps` of weights, duals and multipliers.
    """

    widths: tuple[int, ...]
    draws: bool = False
    linear: bool = True
    gathers: bool = False
    steps: tuple[float, float, float] | None = None
