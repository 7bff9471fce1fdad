"""The values of a round's text, kept by party: an entry is that party's own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

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

    `nodes` is what branches hold within a round; one that is not there would have started from its hub's.
    """

    hubs: tuple[Tensor, ...]
    clients: Mapping[Who, Tensor] = field(default_factory=dict)
    starts: Mapping[Who, Tensor] = field(default_factory=dict)
    moved: frozenset[int] = frozenset()  # silos whose clients have made steps
    nodes: Mapping[Node, Tensor] = field(default_factory=dict)


@dataclass(frozen=True)
class Embeddings:
    """Each client's outputs by part; the head of that moment at its holder's hub, and at its holder's clients."""

    values: Mapping[Who, tuple[Tensor, ...]]
    head: Tensor | None = None
    heads: Mapping[Who, Tensor] = field(default_factory=dict)


@dataclass(frozen=True)
class Frozen:
    """What each client knows of the others by part, and the head it got."""

    known: Mapping[Who, tuple[KnownOfOthers, ...]]
    heads: Mapping[Who, Tensor] = field(default_factory=dict)


def know(client: Client, batch: Batch, rest: Tensor) -> tuple[KnownOfOthers, ...]:
    """What a client with labels knows of each part, from rows of all parts."""
    pieces = torch.split(rest, client.counts(batch))
    return tuple(KnownOfOthers(client.labels(batch, s), piece) for s, piece in enumerate(pieces))


def with_own(frozen: Frozen, embeddings: Embeddings) -> Frozen:
    """Every client also remembers its own embeddings of that moment, and the head it had."""
    known = {
        who: tuple(
            replace(one, own=own, head=embeddings.heads.get(who, frozen.heads.get(who)))
            for one, own in zip(parts, embeddings.values[who], strict=True)
        )
        for who, parts in frozen.known.items()
    }
    return replace(frozen, known=known)
