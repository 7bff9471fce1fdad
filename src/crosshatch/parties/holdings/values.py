"""The values of a round's text as one party has them: its own part, and what everybody knows anyway."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from torch import Tensor

from crosshatch.parties.holdings.model import KnownOfOthers
from crosshatch.protocol.what_is_known import Samples, Stamp


@dataclass(frozen=True)
class Blocks:
    """`mine` is what a hub keeps, a client works with, or a branch holds within a round; None: nobody sent it.

    `latest` is what a client got last, and what a hub or branch told its clients last. A server that averages clients
    itself keeps `every` silo's block, and what it `told_to` the clients of each silo of each group.
    """

    mine: Tensor | None = None
    latest: Tensor | None = None
    every: tuple[Tensor, ...] = ()
    told_to: Mapping[tuple[int, int], Tensor] = field(default_factory=dict)
    moved: frozenset[int] = frozenset()  # silos whose clients have made steps: everybody counts alike


@dataclass(frozen=True)
class Embeddings:
    """A client's outputs by part, and the head of that moment where the party has it.

    Everybody knows by which `embed` each silo's were made.
    """

    samples: Samples
    made: tuple[Stamp, ...]
    values: tuple[Tensor, ...] = ()
    head: Tensor | None = None


@dataclass(frozen=True)
class Frozen:
    """What a client knows of the others by part, and the head it got; what a hub has seen last of the other silos.

    `others` is what a client with labels was told last of them: by silo for a head, their sum (under None) otherwise.
    Rows are those of all parts. Everybody knows which embeddings each silo has seen of which other (`made`), and of
    which parts it was told something (`told_parts`).
    """

    samples: Samples
    made: Mapping[int, Mapping[int, Stamp]] = field(default_factory=dict)
    told_parts: Mapping[int, frozenset[int]] = field(default_factory=dict)
    known: tuple[KnownOfOthers, ...] = ()
    head: Tensor | None = None
    seen: Mapping[int, Tensor] = field(default_factory=dict)
    others: Mapping[int | None, Tensor] = field(default_factory=dict)
