"""The outputs of the silos' blocks for a batch, silos with equal blocks in one go."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import torch
from torch import Tensor

from crosshatch.data.federated import FederatedData
from crosshatch.local.anchors import Anchors
from crosshatch.local.forward import SMALL_BYTES, KeptPass, forward, forward_rows
from crosshatch.local.layers import Chain, ChainPass
from crosshatch.local.read_chain import as_chain, draws_random_numbers
from crosshatch.protocol.what_is_known import Samples, Stamp
from crosshatch.simulator.passes import Passes
from crosshatch.simulator.vertical.batch import Batch
from crosshatch.task.task import Task

Outputs = tuple[Tensor, ...]
"""Of one silo, part by part in the batch's order."""


@dataclass(frozen=True)
class Embeddings:
    """Outputs of every silo's block for the samples of a batch, part by part, in the batch's order.

    `made` says of each silo's by which `embed` they were made. `head` is the head of that moment at its holder's hub,
    `clients_head` at the holder's clients, (h,) for all or (clients at work, h); both are None for a sum.
    """

    samples: Samples
    values: tuple[Outputs, ...]  # [silo][part] (n, e)
    made: tuple[Stamp, ...]  # [silo]
    head: Tensor | None
    clients_head: Tensor | None


@dataclass(frozen=True)
class Embedder:
    """The numbers behind `embed`."""

    data: FederatedData
    task: Task
    passes: Passes
    seed: int
    threads: int
    keep_passes: bool  # the next local work is a single step
    one_party: frozenset[int] = frozenset()  # silos whose hub is their client, and has its block at once
    anchors: Anchors | None = None  # whose mean the class mean is, in a transfer task
    in_pairs: bool = False  # a server keeps the blocks: a hub has the one its clients were told
    elsewhere: Callable[[Mapping[int, Tensor], Batch], Mapping[int, Outputs]] | None = None  # workers, where there are

    def embed(
        self,
        base: Sequence[Tensor],
        weights: Sequence[Tensor],
        moved: Collection[int],
        batch: Batch,
        made: Stamp,
        *,
        only: int | None,
        known: Embeddings | None,
    ) -> Embeddings:
        """Outputs (of silo `only`, the rest from `known`) under each silo's `weights`, (p,) or (clients at work, p).

        `base` are the hubs' blocks, and `moved` the silos whose clients have taken steps from what they got.
        """
        asked = range(len(weights)) if only is None else [only]
        compute = self.elsewhere or self._outputs
        found = compute({j: weights[j] for j in asked}, batch)
        values = tuple(found[j] if j in found or known is None else known.values[j] for j in range(len(weights)))
        stamps = tuple(made if j in found or known is None else known.made[j] for j in range(len(weights)))
        head: Tensor | None = None
        clients_head: Tensor | None = None
        holder = self.task.fusion.holder
        if holder is not None:
            own = weights[holder][..., self.task.layouts[holder].size :]
            clients_head = own[0] if own.dim() == 2 and len(own) == 1 else own
            here = weights[holder] is base[holder] or (holder in self.one_party and holder in moved)
            here |= self.in_pairs and holder not in moved
            head = clients_head if here else self.task.head_in(base)
            if self.anchors is not None and self.anchors.transfer.mean_samples is not None:
                head = clients_head = self._drawn_mean(self.anchors, holder, weights[holder], batch.round)
            if known is not None and only not in (None, holder):
                clients_head = known.clients_head  # that of the moment its clients' embeddings are of
        return Embeddings(batch.parts, values, stamps, head, clients_head)

    def _drawn_mean(self, anchors: Anchors, holder: int, weights: Tensor, round: int) -> Tensor:
        embed = partial(self.task.embed, holder, weights.reshape(-1))
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

    def _outputs(self, weights: Mapping[int, Tensor], batch: Batch) -> dict[int, Outputs]:
        """Of these silos; those alike together, for a batch in one part at the hubs' weights."""
        found: dict[int, Outputs] = {}
        for chain, alike in self._alike:
            mine = {j: weights[j] for j in alike if j in weights}
            if chain is None or len(batch.parts) > 1 or any(one.dim() == 2 for one in mine.values()):
                found |= {j: self._silo(one, batch, j) for j, one in mine.items()}
            elif batch.all_in_order:  # all samples lie where they are
                for j, one in mine.items():
                    found |= self._together(chain, {j: one}, batch)
            elif mine:
                found |= self._together(chain, mine, batch)
        return found

    def _together(self, chain: Chain, weights: Mapping[int, Tensor], batch: Batch) -> dict[int, Outputs]:
        """Of silos with one chain, for a batch in one part."""
        together, xs = self.passes.gather(batch, list(weights))
        done = ChainPass.through(chain, list(weights.values()), together)
        # The outputs are at hand: kept unless they are large and of no use.
        kept = self.keep_passes or sum(out.nbytes for out in done.outputs) <= SMALL_BYTES * len(weights)
        for g, j in enumerate(weights):
            self.passes.kept.pop(j, None)
            if kept:
                self.passes.kept[j] = xs[g], KeptPass(weights[j], chain_pass=done, place=g)
        found: dict[int, Outputs] = {}
        for j, rows in zip(weights, done.outputs[-1].unbind(0), strict=True):
            order = batch.held[j][0].order
            found[j] = (rows if order is None else torch.empty_like(rows).index_copy_(0, order, rows),)
        return found

    def _silo(self, weights: Tensor, batch: Batch, silo: int) -> Outputs:
        """Of one silo, under weights (p,) or each client's own (clients, p)."""
        outputs: list[Tensor] = []
        for s, held in enumerate(batch.held[silo]):
            (x,), _ = self.passes.samples(batch, [silo], s)
            numbers, seed = batch.clients[silo], (self.seed, batch.round, s)
            if weights.dim() == 2:
                rows = forward_rows(self.task, silo, weights, x, held.counts, numbers=numbers, seed=seed)
            else:
                rows, kept = forward(
                    self.task, silo, weights, x, keep=self.keep_passes and s == 0, threads=self.threads, seed=seed,
                    holders=(numbers, held.counts),
                )  # fmt: skip
                if s == 0:
                    self.passes.kept.pop(silo, None)
                    self.passes.kept |= {} if kept is None else {silo: (x, kept)}
            outputs.append(batch.as_drawn(silo, s, rows))
        return tuple(outputs)
