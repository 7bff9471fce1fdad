"""A round's samples in the simulator: the same ids for everybody, for each silo ordered by the client holding them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from crosshatch.errors import ConfigError
from crosshatch.seeds import generator

Ids = npt.NDArray[np.int64]


class BatchSource(Protocol):
    """Where the ids of a round, and the clients selected for it, come from."""

    def ids(self, round: int, part: int, size: int, samples: int) -> Ids:
        """`size` of `samples` ids for a part of a round."""
        ...

    def clients(self, round: int, fraction: float, clients: int) -> Ids:
        """A fraction of the clients, at least one."""
        ...


@dataclass(frozen=True)
class SeededBatches:
    """Drawn without replacement from `(seed, "batch", round, part)`."""

    seed: int

    def ids(self, round: int, part: int, size: int, samples: int) -> Ids:
        """The same ids for everyone who knows the seed."""
        rng = generator(self.seed, "batch", round, part)
        drawn: Ids = rng.choice(samples, size, replace=False, shuffle=False).astype(np.int64)
        return drawn

    def clients(self, round: int, fraction: float, clients: int) -> Ids:
        """The same clients for everyone who knows the seed."""
        count = max(1, int(fraction * clients + 0.5))
        drawn: Ids = generator(self.seed, "clients", round).choice(clients, count, replace=False).astype(np.int64)
        return drawn


@dataclass(frozen=True)
class GivenBatches:
    """A fixed list `rounds[round][part]`, for example of a golden file."""

    rounds: Ids  # (rounds, parts, size), or (rounds, 1, clients) where clients are selected

    def ids(self, round: int, part: int, size: int, samples: int) -> Ids:  # noqa: ARG002
        """The listed ids."""
        ids: Ids = self.rounds[round, part]
        return ids

    def clients(self, round: int, fraction: float, clients: int) -> Ids:  # noqa: ARG002
        """The listed clients."""
        ids: Ids = self.rounds[round, 0]
        return ids


@dataclass(frozen=True)
class Share:
    """How one silo's clients share out a part: `order` sorts the ids by client; `counts` follow the batch's clients.

    With `owners` the rows stay in the batch's order, and it says which client at work has each of them.
    """

    order: Tensor | None  # (n,) None: in order as they are
    counts: Ids  # one for each client at work
    owners: Tensor | None = None  # (n,)

    def sort(self, rows: Tensor) -> Tensor:
        """Rows from the batch's order to this silo's."""
        return rows if self.order is None else rows.index_select(0, self.order)

    def unsort(self, rows: Tensor) -> Tensor:
        """Rows from this silo's order to the batch's."""
        if self.order is None:
            return rows
        out = torch.empty_like(rows)
        return out.index_copy_(0, self.order, rows)


@dataclass
class Batch:
    """`parts[s]` are the ids of local step s (mod the number of parts); `clients[j]` the clients of silo j at work."""

    round: int
    parts: tuple[Ids, ...]
    clients: tuple[Ids, ...]
    shares: tuple[tuple[Share, ...], ...]  # [silo][part]
    whole: bool  # a single part holding all samples in order
    _features: dict[tuple[int, int], Tensor] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        """Samples in all parts together."""
        return sum(len(ids) for ids in self.parts)

    def features(self, silo: int, part: int, train: Tensor) -> Tensor:
        """This silo's samples of a part in its own order, gathered once."""
        key = (silo, part)
        if key not in self._features:
            share = self.shares[silo][part]
            if self.whole and share.order is None:
                self._features[key] = train
            else:
                ids = torch.as_tensor(self.parts[part], device=train.device)
                self._features[key] = train.index_select(0, share.sort(ids))
        return self._features[key]


def draw(source: BatchSource, *, samples: int, size: int | None, round: int, parts: int, first: int) -> tuple[Ids, ...]:
    """The ids of each part; all samples in order where no size is given."""
    if size is None:
        return (np.arange(samples, dtype=np.int64),)
    if size > samples:
        raise ConfigError(
            f"algorithm.batch_size = {size}: more than the {samples} training samples; leave it out to use all of them"
        )
    return tuple(source.ids(round, first + p, size, samples) for p in range(parts))


def share_out(
    parts: tuple[Ids, ...],
    owners: Sequence[Ids | None],
    *,
    round: int,
    whole: bool,
    device: torch.device,
    ordered: bool = True,
) -> Batch:
    """Who holds what of the parts; `owners[j]` is None where silo j has one client.

    `ordered`: each silo's rows are put in the order of its clients. One step from a common start does not need it.
    """
    clients, shares = [], []
    for owner in owners:
        if owner is None:
            clients.append(np.zeros(1, dtype=np.int64))
            shares.append(tuple(Share(None, np.array([len(part)])) for part in parts))
        else:
            whose = [owner[part] for part in parts]
            most = 0 if len(whose) == 1 else max(int(one.max()) + 1 for one in whose)
            held = [np.bincount(one, minlength=most) for one in whose]
            at_work = np.flatnonzero(sum(held[1:], start=held[0]))
            clients.append(at_work)
            share = _share if ordered else partial(_leave, at_work)
            shares.append(tuple(share(one, counts[at_work], device) for one, counts in zip(whose, held, strict=True)))
    return Batch(round, parts, tuple(clients), tuple(shares), whole=whole)


def _share(owner: Ids, counts: Ids, device: torch.device) -> Share:
    # Numbers of 16 bits are sorted by digits, several times as fast.
    order = np.argsort(owner.astype(np.int16) if owner.max() < 2**15 else owner, kind="stable")
    sorted_already = bool((owner[1:] >= owner[:-1]).all())
    return Share(None if sorted_already else torch.as_tensor(order, device=device), counts)


def _leave(at_work: Ids, owner: Ids, counts: Ids, device: torch.device) -> Share:
    position = owner if at_work[-1] == len(at_work) - 1 else np.searchsorted(at_work, owner)
    return Share(None, counts, torch.as_tensor(position, device=device))
