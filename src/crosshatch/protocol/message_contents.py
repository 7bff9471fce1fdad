"""What the messages of each exchange hold: the types and shapes of their tensors, before anybody sends or counts them.

Every party can tell this without a message: sizes follow from the task, the codecs and the rows that are held.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import torch

from crosshatch.codecs import AnyCodec
from crosshatch.protocol.batches import Ids

Spec = tuple[torch.dtype, tuple[int, ...]]
Specs = tuple[Spec, ...]
"""Types and shapes of the tensors in a message."""
Contents = Callable[[int], Specs]
"""The tensors in a message about so many rows."""


@dataclass(frozen=True)
class Call:
    """One use of an exchange: its name, the round, and how many times it was used before in that round."""

    exchange: str
    round: int
    use: int = 0


DECISION: Specs = ((torch.float64, (1,)),)
"""What is decided, as one number."""


@dataclass(frozen=True)
class About:
    """What an exchange with the label's holder is about: parts of the batch (None: all of them).

    The exchange of one local step is about that step's part; the first one of a round carries the embeddings of all.
    `one_per_silo`: around stale embeddings or with a head every silo gets a derivative of its own; with a sum one
    serves all.
    """

    sent_part: int | None
    answered_part: int | None
    one_per_silo: bool

    @classmethod
    def of(cls, parts: int, step: int, *, inner: bool, head: bool) -> About:
        """For an exchange at the round's start, or (`inner`) one that belongs to a local step, about `parts` parts."""
        part = step % parts if inner else None
        later = inner and step > 0
        return cls(part if later else None, part, later or head)


def holder_bytes(clients: int) -> int:
    """How many bytes say which of so many clients a row is of.

    >>> [holder_bytes(clients) for clients in (1, 2, 256, 257, 70_000)]
    [0, 1, 1, 2, 3]
    """
    return ((clients - 1).bit_length() + 7) // 8


@dataclass(frozen=True)
class Always:
    """The same message, whatever the rows."""

    specs: Specs

    def __call__(self, rows: int) -> Specs:  # noqa: ARG002
        return self.specs


@dataclass(frozen=True)
class PerRow:
    """So many `widths` of numbers per row, a tensor each, plain or as a codec writes them, and what comes along."""

    dtype: torch.dtype
    widths: tuple[int, ...]
    along: Specs = ()
    codec: AnyCodec | None = field(default=None, compare=False)  # an exchange has one

    def __call__(self, rows: int) -> Specs:
        return (*(encoded(self.codec, self.dtype, (rows, width)) for width in self.widths), *self.along)


def encoded(codec: AnyCodec | None, dtype: torch.dtype, shape: tuple[int, int]) -> Spec:
    """A tensor as it is sent: plain, or the bytes a codec writes."""
    return (dtype, shape) if codec is None else (torch.uint8, (codec.size(shape, dtype),))


@dataclass(frozen=True)
class MessageContents:
    """The messages of a federation whose silos' embeddings have these widths."""

    dtype: torch.dtype
    widths: tuple[int, ...]
    head: tuple[int, int] | None  # how many numbers of it travel, and the silo that trains it; None: there is none
    codecs: Mapping[str, AnyCodec]
    clients: tuple[int, ...] = ()  # of each silo; encoded rows that a hub passes on say whose they are
    components: int = 1  # how many times a silo's width comes back for each row from who holds the labels

    def block(self, exchange: str, size: int) -> Specs:
        """A message with a block of `size` numbers."""
        codec = self.codecs.get(exchange)
        return self.plain_block(size) if codec is None else (encoded(codec, self.dtype, (1, size)),)

    def plain_block(self, size: int) -> Specs:
        """The same without a codec: where branches add up, and for who missed what a codec builds on."""
        return ((self.dtype, (size,)),)

    @cached_property
    def asked(self) -> list[PerRow]:
        """By silo what its clients send of their embeddings."""
        return [PerRow(self.dtype, (width,), codec=self.codecs.get("share")) for width in self.widths]

    def answers_of(self, senders: Sequence[int], receivers: Sequence[int], *, whole: bool = False) -> list[PerRow]:
        """By receiver what its clients get where these silos sent: their sum with all that was known, or those alone.

        With them goes the head, where its holder is one of the senders.
        `whole`: for clients that missed what the head's codec builds on, with the head as plain numbers.
        """
        if self.head is None:  # a sum is as wide as each
            return [PerRow(self.dtype, (self.widths[i],)) for i in receivers]
        size, trains = self.head
        head = self.plain_block(size) if whole else self._head
        return [
            PerRow(
                self.dtype, (sum(self.widths[j] for j in senders if j != i),),
                head if trains in senders and i != trains else (),
            )
            for i in receivers
        ]  # fmt: skip

    def embeddings_for(self, holder: int, senders: Sequence[int], *, each: bool) -> PerRow:
        """What the label holder's clients get of the others' embeddings: their sum, or those of each."""
        return PerRow(self.dtype, (sum(self.widths[j] for j in senders) if each else self.widths[holder],))

    def derivatives_of(self, asking: Sequence[int], *, each: bool) -> PerRow:
        """What the label holder's clients send: a derivative that serves all silos, or one for each."""
        widths = tuple(self.components * self.widths[j] for j in (asking if each else asking[:1]))
        return PerRow(self.dtype, widths, codec=self.codecs.get("derivatives"))

    def derivatives_for(self, silo: int) -> PerRow:
        """What a silo's clients get back."""
        return PerRow(self.dtype, (self.components * self.widths[silo],))

    def passed_on(
        self, exchange: str, silos: Sequence[int], rows: int, held: Callable[[int], Ids], *, by: int | None = None,
        head: bool = False,
    ) -> list[Specs]:  # fmt: skip
        """What hubs (or that of silo `by`) pass on of their clients' messages, about the embeddings of each silo.

        It is all the rows, or the bytes of every encoded message, and of each row whose it is; `held` tells how many of
        the rows each client at work has. With `head` the silo that trains the head sends it along.
        """
        times, codec = self.components if exchange == "derivatives" else 1, self.codecs.get(exchange)
        found: list[Specs] = []
        for j in silos:
            width = times * self.widths[j]
            gathered: Specs = ((self.dtype, (rows, width)),)
            if codec is not None:
                distinct, of = np.unique([n for n in held(j) if n > 0], return_counts=True)
                sizes = [codec.size((int(n), width), self.dtype) for n in distinct]
                whose = holder_bytes(self.clients[j if by is None else by])
                gathered = (
                    (torch.uint8, (int(np.dot(of, sizes)),)),
                    *([(torch.uint8, (rows, whose))] if whose else []),
                )
            found.append((*gathered, *self._head) if head and self.head is not None and self.head[1] == j else gathered)
        return found

    @cached_property
    def _head(self) -> Specs:
        """What is sent of the head; nothing where there is none."""
        return () if self.head is None else self.block("head", self.head[0])
