"""The outputs of the silos' blocks for a batch, silos with equal blocks in one go."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import torch
from torch import Tensor

from crosshatch.data.federated import FederatedData
from crosshatch.local.anchors import Anchors
from crosshatch.local.forward import forward, forward_alike, forward_rows
from crosshatch.local.layers import Chain
from crosshatch.local.passes import KeptPass
from crosshatch.local.read_chain import as_chain, draws_random_numbers
from crosshatch.protocol.class_means import find_anchors
from crosshatch.simulator.vertical.batch import Batch
from crosshatch.simulator.vertical.blocks import Blocks
from crosshatch.task.task import Task

Outputs = tuple[tuple[Tensor, ...], KeptPass | None]
"""Of one silo, part by part in the batch's order, and the first part's pass where it is kept."""


@dataclass(frozen=True)
class Embeddings:
    """Outputs of every silo's block, part by part, in the batch's order.

    `passes` are forward passes kept for a first local step. `head` is the head of that moment at its holder's hub,
    `clients_head` at the holder's clients, (h,) for all or (clients at work, h); both are None for a sum. `seen` is
    what others got to see of a silo's values where a codec stood in between.
    """

    values: tuple[tuple[Tensor, ...], ...]  # [silo][part] (n, e)
    passes: tuple[KeptPass | None, ...]
    head: Tensor | None
    clients_head: Tensor | None
    seen: dict[int, tuple[Tensor, ...]]


@dataclass(frozen=True)
class Embedder:
    """The numbers behind `embed`."""

    data: FederatedData
    task: Task
    seed: int
    threads: int
    keep_passes: bool  # the next local work is a single step
    one_party: frozenset[int] = frozenset()  # silos whose hub is their client, and has its block at once

    def embed(
        self, blocks: Blocks, starts: Sequence[Tensor], batch: Batch, *, only: int | None, known: Embeddings | None
    ) -> Embeddings:
        """Outputs of the blocks (of silo `only`, the rest from `known`), at the clients' weights where they moved.

        `starts` are what each silo's clients at work start from.
        """
        moved = {} if blocks.steps is None else blocks.steps.client_blocks()
        weights = [moved.get(j, start) for j, start in enumerate(starts)]
        count = len(self.data.silos)
        values: list[tuple[Tensor, ...]] = [()] * count if known is None else list(known.values)
        passes: list[KeptPass | None] = [None] * count if known is None else list(known.passes)
        if only is not None:
            values[only], passes[only] = self._silo(weights[only], batch, only)
        for chain, alike in self._alike if only is None else ():
            for j, outputs in zip(alike, self._silos([weights[j] for j in alike], batch, alike, chain), strict=True):
                values[j], passes[j] = outputs
        seen = {} if known is None or only is None else {j: rows for j, rows in known.seen.items() if j != only}
        head: Tensor | None = None
        clients_head: Tensor | None = None
        holder = self._head_holder
        if holder is not None:
            own = self.task.split(holder, weights[holder])[1]
            assert own is not None
            clients_head = own[0] if own.dim() == 2 and len(own) == 1 else own
            head = clients_head if holder in self.one_party and holder in moved else self.task.head_in(blocks.base)
            if self._anchors is not None:
                head = clients_head = self._drawn_mean(self._anchors, weights[holder], batch.round)
            if known is not None and only not in (None, holder):
                clients_head = known.clients_head  # that of the moment its clients' embeddings are of
        return Embeddings(tuple(values), tuple(passes), head, clients_head, seen)

    @cached_property
    def _head_holder(self) -> int | None:
        return self.task.head_holder

    @cached_property
    def _anchors(self) -> Anchors | None:
        """Where a class mean is that of samples drawn per round; one of all samples is in its holder's vector."""
        transfer = self.task.transfer
        return None if transfer is None or transfer.mean_samples is None else find_anchors(self.data, self.task)

    def _drawn_mean(self, anchors: Anchors, weights: Tensor, round: int) -> Tensor:
        assert self._head_holder is not None
        embed = partial(self.task.embed, self._head_holder, weights.reshape(-1))
        with torch.no_grad():
            return anchors.for_round(self.seed, round).class_mean(embed)

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

    def _silos(
        self, weights: Sequence[Tensor], batch: Batch, silos: Sequence[int], chain: Chain | None
    ) -> list[Outputs]:
        """Of silos alike; together for a batch in one part, at the hubs' weights."""
        alone = chain is None or len(silos) == 1 or len(batch.parts) > 1 or batch.whole
        if chain is None or alone or any(one.dim() == 2 for one in weights):
            return [self._silo(one, batch, j) for j, one in zip(silos, weights, strict=True)]
        x = batch.gather(silos, 0, [self.data.silos[j].train for j in silos])
        done = forward_alike(chain, weights, x, keep=self.keep_passes)
        drawn = batch.as_drawn(silos, 0, [rows for rows, _ in done])
        return [((rows,), passes) for rows, (_, passes) in zip(drawn, done, strict=True)]

    def _silo(self, weights: Tensor, batch: Batch, silo: int) -> Outputs:
        """Of one silo, under weights (p,) or each client's own (clients, p)."""
        outputs: list[Tensor] = []
        kept = None
        for s, held in enumerate(batch.held[silo]):
            (x,) = batch.features([silo], s, [self.data.silos[silo].train])
            seed = (self.seed, batch.round, s)
            if weights.dim() == 2:
                rows = forward_rows(
                    self.task, silo, weights, x, held.counts, held.owners, numbers=batch.clients[silo], seed=seed
                )
            else:
                keep = self.keep_passes and s == 0
                rows, passes = forward(
                    self.task, silo, weights, x, keep=keep, threads=self.threads, seed=seed,
                    holders=(batch.clients[silo], held.counts),
                )  # fmt: skip
                kept = passes if s == 0 else kept
            outputs += batch.as_drawn([silo], s, [rows])
        return tuple(outputs), kept
