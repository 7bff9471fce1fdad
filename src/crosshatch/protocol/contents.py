"""What a message is, before anybody counts it: the tensors in it, and the exchange it belongs to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch

Specs = tuple[tuple[torch.dtype, tuple[int, ...]], ...]
"""Types and shapes of the tensors in a message."""
Message = tuple[str, str, int, str, int, Specs]
"""Sender, receiver, round, exchange, use, tensors: everything that decides a message's bytes but its numbers."""
Contents = Callable[[int], Specs]
"""The tensors in a message about so many rows."""


@dataclass(frozen=True)
class Always:
    """The same message, whatever the rows."""

    specs: Specs

    def __call__(self, rows: int) -> Specs:  # noqa: ARG002
        return self.specs


@dataclass(frozen=True)
class Call:
    """One use of an exchange: its name, the round, and how many times it was used before in that round."""

    exchange: str
    round: int
    use: int = 0


@dataclass(frozen=True)
class About:
    """What an exchange with the label's holder is about: parts of the batch (None: all of them).

    The exchange of one local step is about that step's part; the first one of a round carries the embeddings of all.
    `each`: around stale embeddings or with a head every silo has a derivative of its own; with a sum one serves all.
    """

    asked: int | None
    answered: int | None
    each: bool

    @classmethod
    def of(cls, parts: int, step: int, *, inner: bool, head: bool) -> About:
        """For an exchange at the round's start, or (`inner`) one that belongs to a local step, about `parts` parts."""
        part = step % parts if inner else None
        later = inner and step > 0
        return cls(part if later else None, part, later or head)
