"""Forward passes for the exchange and for evaluation: chains by hand, other modules in pieces."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import Tensor, nn

from crosshatch.seeds import torch_seed
from crosshatch.simulator.batch import Ids
from crosshatch.simulator.local.chain import Chain, as_chain, draws_random_numbers
from crosshatch.simulator.local.layers import forward as forward_chain
from crosshatch.simulator.local.layers import split
from crosshatch.simulator.local.modules import call_with, evaluating, leaves
from crosshatch.simulator.local.pool import run_all
from crosshatch.simulator.local.problem import Passes, Pile, in_pieces
from crosshatch.task.task import Task

_KEPT = 2**30  # bytes of activations kept for a backward pass, a silo; beyond, the forward pass is repeated

_SMALL = 2**24  # bytes
_GRAPHS: WeakKeyDictionary[nn.Module, dict[torch.Size, int]] = WeakKeyDictionary()  # bytes of a pass, by its samples


def forward(
    task: Task, silo: int, weights: Tensor, x: Tensor, *, keep: bool, threads: int, seed: tuple[int, ...] | None = None
) -> tuple[Tensor, Passes | None]:
    """Embeddings (n, e) under one block; with `keep` also what a backward pass needs.

    `seed` (a run's seed and the round) means training: blocks with Dropout draw their masks from it. Without it they
    are in evaluation mode.
    """
    block = task.blocks[silo]
    chain = as_chain(block)
    if chain is not None:
        return forward_alike(chain, [weights], x.unsqueeze(0), keep=keep)[0]
    with _mode(block, x, silo, seed) as random:
        values, passes = _in_pieces(task, silo, weights, x, keep=keep, threads=1 if random else threads)
    # A pass repeated for want of memory would draw other masks.
    repeats = passes is not None and any(piece is None for _, piece in passes.pieces)
    return values, None if random and repeats else passes


def forward_alike(
    chain: Chain, weights: Sequence[Tensor], x: Tensor, *, keep: bool
) -> list[tuple[Tensor, Passes | None]]:
    """The same for G silos with equal chains of layers and samples x (G, n, ...), in one go."""
    flat = weights[0].unsqueeze(0) if len(weights) == 1 else torch.stack(list(weights))
    x = x if x.dim() == 3 else x.flatten(2)
    outputs = forward_chain(split(flat, chain), chain, x)
    # The outputs are at hand: kept unless they are large and of no use.
    pile = None
    if keep or sum(out.nbytes for out in outputs) <= _SMALL * len(weights):
        pile = Pile(chain, flat, x, tuple(outputs))
    rows = outputs[-1].unbind(0)
    return [(rows[g], None if pile is None else Passes(w, pile=pile, place=g)) for g, w in enumerate(weights)]


@contextmanager
def _mode(block: nn.Module, x: Tensor, silo: int, seed: tuple[int, ...] | None) -> Iterator[bool]:
    """Evaluation mode without a seed; with it, whether the block draws random numbers, which then come from it.

    Those that do take one thread: torch has one generator for all.
    """
    if seed is None:
        with evaluating(block):
            yield False
    elif not draws_random_numbers(block, x[:1]):
        yield False
    else:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(torch_seed(seed[0], "dropout", *seed[1:], silo))
            yield True


def _in_pieces(
    task: Task, silo: int, weights: Tensor, x: Tensor, *, keep: bool, threads: int
) -> tuple[Tensor, Passes | None]:
    block = task.blocks[silo]
    parameters = leaves(block, task.split(silo, weights)[0])
    slices = in_pieces(len(x))

    def run(rows: slice, kept: bool) -> Tensor:
        with torch.set_grad_enabled(kept):
            return call_with(block, parameters, x[rows])

    pieces: list[Tensor] = []
    fit = 0
    if keep and slices:
        known = _GRAPHS.setdefault(block, {})
        shape = x[slices[0]].shape
        if shape not in known:
            first, known[shape] = _weigh(partial(run, slices[0], True))
            pieces = [first]
        fit = max(1, _KEPT // max(1, known[shape]))
    work = [partial(run, rows, i < fit) for i, rows in enumerate(slices)]
    pieces += run_all(work[len(pieces) :], threads=threads)
    values = torch.cat([piece.detach() for piece in pieces])
    if not keep:
        return values, None
    kept = (piece if i < fit else None for i, piece in enumerate(pieces))
    return values, Passes(weights, parameters, tuple(zip(slices, kept, strict=True)))


def _weigh(run: Callable[[], Tensor]) -> tuple[Tensor, int]:
    """A forward pass, and the bytes its graph holds on to."""
    held: dict[int, int] = {}

    def pack(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        held[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        out = run()
    return out, sum(held.values())


def forward_rows(
    task: Task,
    silo: int,
    rows: Tensor,
    x: Tensor,
    counts: Ids,
    owners: Ids | None = None,
    *,
    seed: tuple[int, ...] | None = None,
) -> Tensor:
    """Embeddings (n, e) where every client at work has a block of its own, `rows` (clients, p).

    Samples x are ordered by client, or `owners` (n,) says whose each is. `seed` as for `forward`.
    """
    if owners is not None:
        order = torch.as_tensor(np.argsort(owners, kind="stable"), device=x.device)
        sorted_by_client = forward_rows(task, silo, rows, x.index_select(0, order), counts, seed=seed)
        return torch.empty_like(sorted_by_client).index_copy_(0, order, sorted_by_client)
    pieces = torch.split(x, counts.tolist())
    with _mode(task.blocks[silo], x, silo, seed), torch.no_grad():
        return torch.cat([task.embed(silo, w, piece) for w, piece in zip(rows, pieces, strict=True) if len(piece)])
