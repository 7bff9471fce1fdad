"""What a local step does, as one value."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class LocalSteps:
    """`steps` gradient steps of one size, the first of which has number `first`: it says which part of a batch is used.

    `proximal` is the weight of a pull towards the block the client starts from. With an `anticipation` above 1 each
    silo assumes that the others move along: the loss's derivative is taken that many times as far from the scores of
    the exchange as the silo alone has moved them. Derivatives that the label's holder sent stay as they are, or go on
    with the silo's own scores (`continued`, for a sum); silos that have labels need no such thing.

    >>> LocalSteps(10, 0.1, proximal=0.5)
    LocalSteps(steps=10, step_size=0.1, first=0, proximal=0.5, anticipation=1.0, continued=False)
    """

    steps: int
    step_size: float
    first: int = 0
    proximal: float = 0.0
    anticipation: float = 1.0
    continued: bool = False
