"""Forward passes for the exchange: whole batches for chains, cache-sized pieces for heavier modules."""

from __future__ import annotations

import copy
from concurrent.futures import ThreadPoolExecutor

import torch
from torch import Tensor, nn
from torch.func import functional_call

from crosshatch.simulator.batch import Ids
from crosshatch.simulator.local.chain import as_chain
from crosshatch.simulator.local.problem import Passes
from crosshatch.task.task import Task

_PIECE = 128  # rows of a piece for convolutions and recurrent layers: their activations stay in the cache
_CHAIN_PIECE = 65536


def forward(
    task: Task, silo: int, weights: Tensor, x: Tensor, *, keep: bool, threads: int
) -> tuple[Tensor, Passes | None]:
    """Embeddings (n, e) under one block; with `keep` also the graph, for a backward pass."""
    chain = as_chain(task.blocks[silo]) is not None
    size = _CHAIN_PIECE if chain else _PIECE
    leaf = weights.detach().requires_grad_(keep)
    views = task.layouts[silo].views(task.split(silo, leaf)[0])
    slices = [slice(low, min(low + size, len(x))) for low in range(0, len(x), size)]

    def run(rows: slice, module: nn.Module) -> Tensor:
        with torch.set_grad_enabled(keep):
            out: Tensor = functional_call(module, views, (x[rows],))
        return out

    if threads > 1 and len(slices) > 1:
        # functional_call swaps parameters in place, so every piece at work needs a module of its own
        copies = [copy.deepcopy(task.blocks[silo]) for _ in range(threads)]
        with ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,)) as pool:
            lanes = pool.map(lambda t: [run(rows, copies[t]) for rows in slices[t::threads]], range(threads))
            done = list(lanes)
        pieces = [done[i % threads][i // threads] for i in range(len(slices))]
    else:
        pieces = [run(rows, task.blocks[silo]) for rows in slices]
    passes = Passes(leaf, tuple(zip(slices, pieces, strict=True))) if keep else None
    return torch.cat([piece.detach() for piece in pieces]), passes


def forward_rows(task: Task, silo: int, rows: Tensor, x: Tensor, counts: Ids) -> Tensor:
    """Embeddings (n, e) where every client at work has a block of its own, `rows` (clients, p)."""
    pieces = x.split(counts.tolist())
    with torch.no_grad():
        return torch.cat([task.embed(silo, w, piece) for w, piece in zip(rows, pieces, strict=True) if len(piece)])
