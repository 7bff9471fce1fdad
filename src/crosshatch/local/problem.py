"""The local work of one silo in a round, as the strategies see it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import ceil

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from crosshatch.local.layers import Chain
from crosshatch.task.task import Task

_PIECE = 512  # rows


@dataclass(frozen=True)
class Known:
    """What a silo's clients know of the others for their samples (n rows, in the silo's own order).

    Either the labels with the others' embeddings, or the derivative the label's holder sent.
    """

    y: Tensor | None = None  # (n,)
    rest: Tensor | None = None  # sum: (n, c), the others' sum; head: (n, all e), own columns to be overwritten
    derivative: Tensor | None = None  # (n, e), labels held elsewhere

    def rows(self, where: slice) -> Known:
        """The same for some of the rows."""
        return Known(*(None if t is None else t[where] for t in (self.y, self.rest, self.derivative)))

    def select(self, index: Tensor) -> Known:
        """The same for the rows with these numbers."""
        return Known(*(None if t is None else t.index_select(0, index) for t in (self.y, self.rest, self.derivative)))


@dataclass(frozen=True)
class Part:
    """The samples of some local steps: rows ordered by client, `counts[i]` of them at the i-th client at work.

    With `owners` (n,) the rows are in any order, and `owners` says whose each is: enough where one pass serves all.
    """

    x: Tensor
    known: Known
    counts: npt.NDArray[np.int64]
    owners: npt.NDArray[np.int64] | None = None

    @property
    def offsets(self) -> npt.NDArray[np.int64]:
        """Where each client's rows begin, and the end."""
        return np.concatenate([[0], np.cumsum(self.counts)])

    def whose(self) -> npt.NDArray[np.int64]:
        """Which client at work has each row."""
        return np.repeat(np.arange(len(self.counts)), self.counts) if self.owners is None else self.owners

    def rows(self, low: int, high: int) -> Part:
        """One client's samples, which are these rows."""
        where = slice(low, high)
        return Part(self.x[where], self.known.rows(where), np.array([high - low]))

    def ordered(self) -> Part:
        """The same samples ordered by client."""
        if self.owners is None:
            return self
        order = torch.as_tensor(np.argsort(self.owners, kind="stable"), device=self.x.device)
        return Part(self.x.index_select(0, order), self.known.select(order), self.counts)


@dataclass(frozen=True)
class Problem:
    """`steps` gradient steps at each of a silo's clients at work.

    Step q uses part `(first + q) % len(parts)`; a client without rows in it stays where it is. The gradient is that of
    the mean loss over the client's rows, plus the regulariser's on the block (a head has none), plus `pull` times the
    distance to its start.
    """

    task: Task
    silo: int
    parts: tuple[Part, ...]
    start: Tensor  # (p,) the same for all, or (clients, p)
    head: Tensor | None  # the head as received; None at its holder, and for a sum
    columns: tuple[int, int]  # where this silo's embedding stands in what is joined
    steps: int
    step_size: float
    first: int = 0
    pull: float = 0.0
    passes: Passes | None = None  # the forward pass of the first part at a common start, kept for the first step
    seed: tuple[int, ...] = (0,)  # the run's seed and the round, for blocks which draw random numbers
    numbers: npt.NDArray[np.int64] | None = None  # of the clients at work in their silo; None: one after the other

    @property
    def clients(self) -> int:
        """How many clients are at work."""
        return len(self.parts[0].counts)

    def number(self, client: int) -> int:
        """The number in the silo of the i-th client at work."""
        return client if self.numbers is None else int(self.numbers[client])

    @property
    def starts_from_passes(self) -> bool:
        """Whether the kept forward pass is that of the first step."""
        kept = self.passes is not None and self.passes.start is self.start
        return kept and self.start.dim() == 1 and self.first % len(self.parts) == 0

    @property
    def passes_in_order(self) -> bool:
        """Whether it has the samples in the clients' order, for a chain on one part."""
        chain = self.passes is not None and self.passes.pile is not None
        return chain and self.starts_from_passes and len(self.parts) == 1 and self.parts[0].owners is None

    def part(self, step: int) -> Part:
        """The samples of a local step."""
        return self.parts[(self.first + step) % len(self.parts)]

    def join(self, own: Tensor, rest: Tensor) -> Tensor:
        """This silo's embeddings and the others' part together: the scores of a sum, or what the head takes."""
        return self.task.fusion.join(own, rest, self.columns)

    def derivative(self, embedding: Tensor, known: Known) -> Tensor:
        """Each row's derivative of its loss at the block's outputs (..., n, e), for a sum or where it was sent."""
        if known.derivative is not None:
            return known.derivative.clone()
        assert known.rest is not None
        assert known.y is not None
        assert self.task.head is None
        return self.task.loss.derivative(self.join(embedding, known.rest), known.y)

    def loss(
        self,
        embedding: Tensor,
        known: Known,
        head: Callable[[Tensor], Tensor] | None,
        weights: Tensor | None = None,
    ) -> Tensor:
        """Mean loss over the rows (or their sum under `weights` (n,)), differentiable in the embedding and the head."""
        if known.derivative is not None:
            values = (embedding * known.derivative).sum(-1)
        else:
            assert known.rest is not None
            assert known.y is not None
            scores = self.task.fusion.scores(self.join(embedding, known.rest), head)
            values = self.task.loss.value(scores, known.y)
        return values.mean() if weights is None else values @ weights


def in_pieces(rows: int) -> list[slice]:
    """Rows cut for modules other than chains: memory stays bounded, and threads have work."""
    size = max(1, ceil(rows / max(1, round(rows / _PIECE))))
    return [slice(low, min(low + size, rows)) for low in range(0, rows, size)]


@dataclass(frozen=True)
class Passes:
    """A forward pass kept for its backward, under the weights `start`.

    For a chain every layer's outputs, differentiated by hand; for any other module (rows, embedding with its
    graph) piece by piece, the embedding None where the graph would have taken too much memory or was gone back through.
    """

    start: Tensor
    leaves: Mapping[str, Tensor] = field(default_factory=dict)  # the block's parameters in the graphs
    pieces: list[tuple[slice, Tensor | None]] = field(default_factory=list)
    pile: Pile | None = None  # with this silo's pass at `place`
    place: int = 0
    joint: Joint | None = None  # the pass this one is a part of


@dataclass(frozen=True, eq=False)
class Joint:
    """A forward pass over the samples x of several groups."""

    passes: Passes
    x: Tensor

    def of(self, rows: slice) -> Passes:
        """That of some rows: to go back from those alone, a chain has what it takes, other modules pass once more."""
        whole = self.passes
        pile = None if whole.pile is None else whole.pile.of(rows)
        pieces: list[tuple[slice, Tensor | None]] = []
        if pile is None:
            pieces = [(piece, None) for piece in in_pieces(rows.stop - rows.start)]
        return Passes(whole.start, whole.leaves, pieces, pile, whole.place, self)


@dataclass(frozen=True, eq=False)
class Pile:
    """Forward passes of G silos with equal chains of layers, computed in one go."""

    chain: Chain
    weights: Tensor  # (G, p)
    x: Tensor  # (G, n, d)
    outputs: tuple[Tensor, ...]  # of every layer, (G, n, o)

    def one(self, place: int) -> Pile:
        """The pass of one silo."""
        where = slice(place, place + 1)
        return Pile(self.chain, self.weights[where], self.x[where], tuple(out[where] for out in self.outputs))

    def of(self, rows: slice) -> Pile:
        """The passes of some of the rows."""
        return Pile(self.chain, self.weights, self.x[:, rows], tuple(out[:, rows] for out in self.outputs))
