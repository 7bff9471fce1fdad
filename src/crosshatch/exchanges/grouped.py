"""Groups: whole vertical federations that are members of horizontal tiers, written once for any engine.

A value is a tuple with the value of each group, and an exchange is the same exchange in every group. What groups do
together is their server's business.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Generic, Protocol, TypeVar, final

from crosshatch.exchanges.vertical import Batch, Blocks, Embeddings, Federation, Frozen, Number, Within
from crosshatch.local.local_steps import LocalSteps
from crosshatch.protocol.names import ClientWeights

Samples = TypeVar("Samples", contravariant=True)
_BY_GROUP = ("known", "around", "earlier")  # arguments that have a value for each group


class Server(Protocol[Blocks, Samples]):
    """What the groups of an engine do together; the engine has it."""

    def average(
        self,
        blocks: tuple[Blocks, ...],
        batch: tuple[Samples, ...],
        *,
        weights: ClientWeights,
        within: Within,
        depth: int,
    ) -> tuple[Blocks, ...]:
        """The average over the clients of each group, or within the "federation" over those of all groups."""
        ...

    def average_groups(self, blocks: tuple[Blocks, ...], *, round: int, level: int) -> tuple[Blocks, ...]:
        """The average over the groups of each member of a tier."""
        ...

    def decide(self, value: Number, *, round: int, by: int) -> Number:
        """What a hub of the first group tells the same hub of every other one."""
        ...


@final
class Grouped(
    Federation[tuple[Blocks, ...], tuple[Batch, ...], tuple[Embeddings, ...], tuple[Frozen, ...]],
    Generic[Blocks, Batch, Embeddings, Frozen],
):
    """Several federations with as many silos each, and what they do together."""

    def __init__(
        self, groups: Sequence[Federation[Blocks, Batch, Embeddings, Frozen]], server: Server[Blocks, Batch]
    ) -> None:
        self.groups, self.server = tuple(groups), server

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

    def average_groups(self, blocks: tuple[Blocks, ...], *, round: int, level: int = 0) -> tuple[Blocks, ...]:
        """Every hub to the server of its member of the tier, the weighted average back."""
        return self.server.average_groups(blocks, round=round, level=level)

    def broadcast(self, blocks: tuple[Blocks, ...], batch: tuple[Batch, ...], **where: Any) -> tuple[Blocks, ...]:
        """Hub (or server, or branches) to clients in every group."""
        return self._each("broadcast", blocks, batch, **where)

    def average(
        self,
        blocks: tuple[Blocks, ...],
        batch: tuple[Batch, ...],
        *,
        weights: ClientWeights = "equal",
        within: Within = "silo",
        depth: int = 0,
    ) -> tuple[Blocks, ...]:
        """Clients to hub in every group, or all of them to the server."""
        return self.server.average(blocks, batch, weights=weights, within=within, depth=depth)

    def embed(self, blocks: tuple[Blocks, ...], batch: tuple[Batch, ...], **known: Any) -> tuple[Embeddings, ...]:
        """Outputs in every group."""
        return self._each("embed", blocks, batch, **known)

    def exchange(
        self, embeddings: tuple[Embeddings, ...], batch: tuple[Batch, ...], **known: Any
    ) -> tuple[Frozen, ...]:
        """The exchange inside every group."""
        return self._each("exchange", embeddings, batch, **known)

    def decide(self, value: Number, *, round: int, by: int = 0) -> Number:
        """One hub of the first group to the server, on to the same hub of every other group, and on in all of them."""
        told = self.server.decide(value, round=round, by=by)
        answer: Number = self._each("decide", value=told, round=round, by=by)[0]
        return answer

    def _descend(
        self, blocks: tuple[Blocks, ...], batch: tuple[Batch, ...], frozen: tuple[Frozen, ...], local: LocalSteps, *,
        only: int | None, earlier: Sequence[tuple[tuple[Batch, ...], tuple[Frozen, ...]]],
    ) -> tuple[Blocks, ...]:  # fmt: skip
        before = [[(samples[g], known[g]) for samples, known in earlier] for g in range(len(self.groups))]
        return self._each("_descend", blocks, batch, frozen, local=local, only=only, earlier=tuple(before))
