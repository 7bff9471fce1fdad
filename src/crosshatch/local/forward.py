"""Forward passes for the exchange and for evaluation: chains by hand, other modules in pieces."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from math import ceil
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from crosshatch.local.layers import ChainPass
from crosshatch.local.masks import own_masks
from crosshatch.local.modules import call, call_with, evaluating, leaves
from crosshatch.local.pool import run_each
from crosshatch.local.read_chain import as_chain, draws_random_numbers
from crosshatch.task.task import Task

Ids = npt.NDArray[np.int64]
BATCH_ROWS = 8192  # scored at a time
ALIGNMENT = 64  # bytes: where torch's own tensors begin
_PIECE_ROWS = 512  # of modules other than chains
_KEPT_BYTES = 2**30  # activations kept for a backward pass, per silo; beyond, the forward pass is repeated
SMALL_BYTES = 2**24  # outputs kept even if nobody asked for them, per silo
_GRAPHS: WeakKeyDictionary[nn.Module, dict[torch.Size, int]] = WeakKeyDictionary()  # bytes of a pass, by its samples


def fixed_batches(xs: Sequence[Tensor]) -> Iterator[list[Tensor]]:
    """Rows (n, ...) of all silos, always `BATCH_ROWS` at a time: so a score has the same bits however rows were read.

    Products of other shapes may round differently, and so may those of tensors that begin elsewhere in memory.
    """
    for low in range(0, max(1, len(xs[0])), BATCH_ROWS):
        yield [aligned(x[low : low + BATCH_ROWS]) for x in xs]


def aligned(x: Tensor) -> Tensor:
    """The same numbers one behind another, from where torch's own tensors begin: a copy where they lie otherwise."""
    whole = x.is_contiguous() and x.data_ptr() % ALIGNMENT == 0
    return x if whole else x.clone(memory_format=torch.contiguous_format)


@dataclass(frozen=True)
class KeptPass:
    """One silo's forward pass under the weights `start`, kept for its backward pass.

    For a chain these are every layer's outputs, differentiated by hand. For any other module they are pieces, each with
    its rows and its embedding with the graph; the embedding is None where the graph would have taken too much memory,
    or where somebody has gone back through it.
    """

    start: Tensor
    leaves: Mapping[str, Tensor] = field(default_factory=dict)  # the block's parameters in the graphs
    pieces: list[tuple[slice, Tensor | None]] = field(default_factory=list)
    chain_pass: ChainPass | None = None  # this silo's pass stands in it at `place`
    place: int = 0


def in_pieces(rows: int) -> list[slice]:
    """Rows cut for modules other than chains: memory stays bounded, and threads have work."""
    size = max(1, ceil(rows / max(1, round(rows / _PIECE_ROWS))))
    return [slice(low, min(low + size, rows)) for low in range(0, rows, size)]


def forward(
    task: Task,
    silo: int,
    weights: Tensor,
    x: Tensor,
    *,
    keep: bool,
    threads: int,
    seed: tuple[int, ...] | None = None,
    holders: tuple[Ids, Ids] | None = None,
) -> tuple[Tensor, KeptPass | None]:
    """Embeddings (n, e) under one block; with `keep` also what a backward pass needs.

    `seed` (a run's seed, the round and the part) means training; without it blocks are in evaluation mode. Blocks that
    draw random numbers pass client by client, each with its own numbers: `holders` are the clients' numbers and their
    counts of rows, which lie one client after the other (None: client 0 has all rows). Such a pass is not kept, since
    the local step repeats it with the same random numbers.
    """
    block = task.blocks[silo]
    chain = as_chain(block)
    if chain is not None:
        done = ChainPass.through(chain, [weights], x.unsqueeze(0))
        kept = keep or sum(out.nbytes for out in done.outputs) <= SMALL_BYTES
        return done.outputs[-1][0], KeptPass(weights, chain_pass=done) if kept else None
    if seed is not None and draws_random_numbers(block, x[:1]):
        numbers, counts = (np.zeros(1, dtype=np.int64), np.array([len(x)])) if holders is None else holders
        return forward_rows(task, silo, weights.expand(len(counts), -1), x, counts, numbers=numbers, seed=seed), None
    parameters, slices = leaves(block, task.split(silo, weights)[0]), in_pieces(len(x))

    def run(rows: slice, kept: bool) -> Tensor:
        with torch.set_grad_enabled(kept):
            return call_with(block, parameters, x[rows])

    with evaluating(block) if seed is None else nullcontext():
        pieces: list[Tensor] = []
        fit = 0
        if keep and slices:
            known = _GRAPHS.setdefault(block, {})
            shape = x[slices[0]].shape
            if shape not in known:
                first, known[shape] = weigh(partial(run, slices[0], True))
                pieces = [first]
            fit = max(1, _KEPT_BYTES // max(1, known[shape]))
        work = [partial(run, rows, i < fit) for i, rows in enumerate(slices)]
        pieces += run_each(work[len(pieces) :], threads=threads)
    values = torch.cat([piece.detach() for piece in pieces])
    if not keep:
        return values, None
    graphs = (piece if i < fit else None for i, piece in enumerate(pieces))
    return values, KeptPass(weights, parameters, list(zip(slices, graphs, strict=True)))


def weigh(run: Callable[[], Tensor], *further: Tensor) -> tuple[Tensor, int]:
    """A forward pass, and the bytes that its graph and some further tensors hold on to, each storage once."""
    held: dict[int, int] = {}

    def pack(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        held[storage.data_ptr()] = storage.nbytes()
        return tensor

    for tensor in further:
        pack(tensor)
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        out = run()
    return out, sum(held.values())


def forward_rows(
    task: Task,
    silo: int,
    rows: Tensor,
    x: Tensor,
    counts: Ids,
    *,
    numbers: Ids,
    seed: tuple[int, ...],
) -> Tensor:
    """Embeddings (n, e) in training where every client at work has a block of its own, `rows` (clients, p).

    Samples x are ordered by client. `numbers` are those of the clients in their silo, and `seed` is that of `forward`.
    """
    random = draws_random_numbers(task.blocks[silo], x[:1])
    outputs = []
    with torch.no_grad():
        for weights, piece, number in zip(rows, torch.split(x, counts.tolist()), numbers.tolist(), strict=True):
            if len(piece):
                with own_masks(seed, silo, number) if random else nullcontext():
                    outputs.append(call(task.blocks[silo], task.split(silo, weights)[0], piece))
    return torch.cat(outputs)
