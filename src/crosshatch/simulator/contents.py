"""What a message is, before anybody counts it: the tensors in it, and the exchange it belongs to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch

Specs = tuple[tuple[torch.dtype, tuple[int, ...]], ...]
"""Types and shapes of the tensors in a message."""
Message = tuple[str, str, int, str, int, Specs]
"""Sender, receiver, round, exchange, step, tensors: everything that decides a message's bytes but its numbers."""
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
    """One use of an exchange: its name, the round, and the local step for exchanges within a round."""

    exchange: str
    round: int
    step: int = 0
