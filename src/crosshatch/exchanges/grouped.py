"""Groups: whole vertical federations that are members of horizontal tiers, written once for any engine.

A value is a tuple with the value of each group, and an exchange is the same exchange in every group. What groups do
together, at their server, is an engine's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Generic

from crosshatch.exchanges.vertical import Batch, Blocks, Embeddings, Federation, Frozen
from crosshatch.local.local_steps import LocalSteps

_BY_GROUP = ("known", "around", "earlier")  # arguments that have a value for each group


class Grouped(
    Federation[tuple[Blocks, ...], tuple[Batch, ...], tuple[Embeddings, ...], tuple[Frozen, ...]],
    Generic[Blocks, Batch, Embeddings, Frozen],
):
    """Several federations with as many silos each; what they do together is left to an engine."""

    groups: tuple[Federation[Blocks, Batch, Embeddings, Frozen], ...]

    @property
    def silos(self) -> Sequence[int]:
        """Numbers of the silos of a group."""
        return self.groups[0].silos

    @property
    def labels_held(self) -> bool:
        """Whether one silo of a group alone knows the labels."""
        return self.groups[0].labels_held

    def _each(self, exchange: str, *values: tuple[Any, ...], **named: Any) -> tuple[Any, ...]:
        """The same exchange in every group, each with its own part of the values."""
        answers = []
        for g, group in enumerate(self.groups):
            own = {name: value[g] if value and name in _BY_GROUP else value for name, value in named.items()}
            answers.append(getattr(group, exchange)(*(value[g] for value in values), **own))
        return tuple(answers)

    def draw_batch(self, size: int | None, *, round: int, parts: int = 1, first: int = 0) -> tuple[Batch, ...]:
        """`size` samples in every group."""
        return self._each("draw_batch", size=size, round=round, parts=parts, first=first)

    def select(self, fraction: float, *, round: int) -> tuple[Batch, ...]:
        """A fraction of the clients of every group."""
        return self._each("select", fraction=fraction, round=round)

    def broadcast(self, blocks: tuple[Blocks, ...], batch: tuple[Batch, ...], **where: Any) -> tuple[Blocks, ...]:
        """Hub (or server, or branches) to clients in every group."""
        return self._each("broadcast", blocks, batch, **where)

    def embed(self, blocks: tuple[Blocks, ...], batch: tuple[Batch, ...], **known: Any) -> tuple[Embeddings, ...]:
        """Outputs in every group."""
        return self._each("embed", blocks, batch, **known)

    def exchange(
        self, embeddings: tuple[Embeddings, ...], batch: tuple[Batch, ...], **known: Any
    ) -> tuple[Frozen, ...]:
        """The exchange inside every group."""
        return self._each("exchange", embeddings, batch, **known)

    def _descend(
        self, blocks: tuple[Blocks, ...], batch: tuple[Batch, ...], frozen: tuple[Frozen, ...], local: LocalSteps, *,
        only: int | None, earlier: Sequence[tuple[tuple[Batch, ...], tuple[Frozen, ...]]],
    ) -> tuple[Blocks, ...]:  # fmt: skip
        before = [[(samples[g], known[g]) for samples, known in earlier] for g in range(len(self.groups))]
        return self._each("_descend", blocks, batch, frozen, local=local, only=only, earlier=tuple(before))
