"""The values of a round's text, kept by party: an entry is that party's own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from crosshatch.protocol.what_is_known import Samples, Stamp
from crosshatch.testing.parties.agreed import Batch
from crosshatch.testing.parties.client import Client
from crosshatch.testing.parties.model import KnownOfOthers

Who = tuple[int, int]
"""Silo and client."""
Node = tuple[int, int, int]
"""Silo, level and number of a branch."""


@dataclass(frozen=True)
class Blocks:
    """`hubs[j]` is known to hub j, `clients[j, k]` to client k of silo j; `starts` are what clients got.

    `nodes` is what branches hold within a round; one that is not there would have started from its hub's. `told` is
    what a node above clients, a hub or a branch, told them last.
    """

    hubs: tuple[Tensor, ...]
    clients: Mapping[Who, Tensor] = field(default_factory=dict)
    starts: Mapping[Who, Tensor] = field(default_factory=dict)
    moved: frozenset[int] = frozenset()  # silos whose clients have made steps
    nodes: Mapping[Node, Tensor] = field(default_factory=dict)
    told: Mapping[Node, Tensor] = field(default_factory=dict)


@dataclass(frozen=True)
class Embeddings:
    """Each client's outputs by part; the head of that moment at its holder's hub, and at its holder's clients.

    Everybody knows by which `embed` each silo's were made.
    """

    samples: Samples
    made: tuple[Stamp, ...]
    values: Mapping[Who, tuple[Tensor, ...]]
    head: Tensor | None = None
    heads: Mapping[Who, Tensor] = field(default_factory=dict)


@dataclass(frozen=True)
class Frozen:
    """What each client knows of the others by part, and the head it got.

    `seen` is what each hub saw last of the other silos' embeddings, by silo; everybody knows which they were (`made`).
    `others` is what clients with labels were told last of them: by silo for a head, their sum (under None) otherwise.
    Rows are those of all parts.
    """

    samples: Samples
    known: Mapping[Who, tuple[KnownOfOthers, ...]] = field(default_factory=dict)
    heads: Mapping[Who, Tensor] = field(default_factory=dict)
    seen: Mapping[int, Mapping[int, Tensor]] = field(default_factory=dict)
    made: Mapping[int, Mapping[int, Stamp]] = field(default_factory=dict)
    others: Mapping[Who, Mapping[int | None, Tensor]] = field(default_factory=dict)


def know(client: Client, batch: Batch, others: Mapping[int | None, Tensor]) -> tuple[KnownOfOthers, ...]:
    """What a client with labels knows of each part, from rows of all parts: the others' sum, or theirs side by side."""
    rest = torch.cat([others[j] for j in sorted(others, key=lambda j: j or 0)], dim=1)
    pieces = torch.split(rest, client.counts(batch))
    return tuple(KnownOfOthers(client.labels(batch, s), piece) for s, piece in enumerate(pieces))


def with_own(
    known: Mapping[Who, tuple[KnownOfOthers, ...]], embeddings: Embeddings, heads: Mapping[Who, Tensor]
) -> dict[Who, tuple[KnownOfOthers, ...]]:
    """Every client also remembers its own embeddings of that moment, and the head it had."""
    return {
        who: tuple(
            replace(one, own=own, head=embeddings.heads.get(who, heads.get(who)))
            for one, own in zip(parts, embeddings.values[who], strict=True)
        )
        for who, parts in known.items()
    }
