"""The outputs of the silos' blocks for a batch, silos with equal blocks in one go."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from torch import Tensor

from crosshatch.data.federated import FederatedData
from crosshatch.local.forward import forward, forward_alike, forward_rows
from crosshatch.local.layers import Chain
from crosshatch.local.passes import KeptPass
from crosshatch.local.read_chain import as_chain, draws_random_numbers
from crosshatch.simulator.vertical.batch import Batch
from crosshatch.simulator.vertical.values import Blocks, Embeddings
from crosshatch.task.task import Task

Outputs = tuple[tuple[Tensor, ...], KeptPass | None]
"""Of one silo, part by part in the batch's order, and the first part's pass where it is kept."""


@dataclass(frozen=True)
class Embedder:
    """The numbers behind `embed`."""

    data: FederatedData
    task: Task
    seed: int
    threads: int
    keep_passes: bool  # the next local work is a single step
    starts: Callable[[Blocks, Batch, int], Tensor]  # what a silo's clients at work start from

    def embed(self, blocks: Blocks, batch: Batch, *, only: int | None, known: Embeddings | None) -> Embeddings:
        """Outputs of the blocks (of silo `only`, the rest from `known`), at the clients' weights where they moved."""
        count = len(self.data.silos)
        values: list[tuple[Tensor, ...]] = [()] * count if known is None else list(known.values)
        passes: list[KeptPass | None] = [None] * count if known is None else list(known.passes)
        if only is not None:
            values[only], passes[only] = self._silo(blocks, batch, only)
        for chain, alike in self._alike if only is None else ():
            for j, outputs in zip(alike, self._silos(blocks, batch, alike, chain), strict=True):
                values[j], passes[j] = outputs
        seen = {} if known is None else {j: rows for j, rows in known.seen.items() if j != only}
        return Embeddings(tuple(values), tuple(passes), self.head(blocks), self._clients_head(blocks, batch), seen)

    @cached_property
    def _alike(self) -> list[tuple[Chain | None, list[int]]]:
        """The silos, those with the same chain of layers together."""
        groups: dict[object, tuple[Chain | None, list[int]]] = {}
        for j, block in enumerate(self.task.blocks):
            chain = as_chain(block)
            key = j if chain is None or self.task.holds_head(j) else chain
            groups.setdefault(key, (chain, []))[1].append(j)
        return list(groups.values())

    @cached_property
    def random(self) -> bool:
        """Whether a block draws random numbers."""
        pairs = zip(self.task.blocks, self.data.silos, strict=True)
        return any(draws_random_numbers(block, silo.train[:2]) for block, silo in pairs)  # norms may refuse one sample

    def _silos(self, blocks: Blocks, batch: Batch, silos: Sequence[int], chain: Chain | None) -> list[Outputs]:
        """Of silos alike; together for a batch in one part, at the hubs' weights."""
        if chain is None or len(silos) == 1 or len(batch.parts) > 1 or batch.whole or blocks.moved is not None:
            return [self._silo(blocks, batch, j) for j in silos]
        weights = [self.starts(blocks, batch, j) for j in silos]
        if weights[0].dim() == 2:
            return [self._silo(blocks, batch, j) for j in silos]
        x = batch.gather(silos, 0, [self.data.silos[j].train for j in silos])
        done = forward_alike(chain, weights, x, keep=self.keep_passes)
        return [((batch.shares[j][0].unsort(rows),), passes) for j, (rows, passes) in zip(silos, done, strict=True)]

    def _silo(self, blocks: Blocks, batch: Batch, silo: int) -> Outputs:
        outputs = []
        kept = None
        weights = self._weights(blocks, batch, silo)
        for s, share in enumerate(batch.shares[silo]):
            x = batch.features(silo, s, self.data.silos[silo].train)
            seed = (self.seed, batch.round, s)
            if weights.dim() == 2:
                rows = forward_rows(
                    self.task, silo, weights, x, share.counts, share.owners, numbers=batch.clients[silo], seed=seed
                )
            else:
                keep = self.keep_passes and s == 0
                rows, passes = forward(
                    self.task, silo, weights, x, keep=keep, threads=self.threads, seed=seed,
                    holders=(batch.clients[silo], share.counts),
                )  # fmt: skip
                kept = passes if s == 0 else kept
            outputs.append(share.unsort(rows))
        return tuple(outputs), kept

    def _weights(self, blocks: Blocks, batch: Batch, silo: int) -> Tensor:
        """Under which a silo's clients at work compute: (p,) where it is the same for all, or (clients, p)."""
        if blocks.moved is not None and silo in blocks.moved.problems:
            return blocks.moved.rows()[silo]
        return self.starts(blocks, batch, silo)

    def head(self, blocks: Blocks) -> Tensor | None:
        """The head as its holder's hub has it."""
        return self.task.head_in(blocks.base)

    def _clients_head(self, blocks: Blocks, batch: Batch) -> Tensor | None:
        """The head as its holder's clients got it."""
        if not (blocks.received or blocks.branches):
            return self.head(blocks)
        starts = [self.starts(blocks, batch, j) for j in range(len(blocks.base))]
        return self.task.head_in([start if start.dim() == 1 else start[0] for start in starts])
