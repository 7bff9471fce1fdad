"""Chains of linear layers, all clients at once: their copies are an axis, a step is a few batched products.

Clients with similar numbers of rows form a bucket and are padded to its longest; a padded row has weight zero in the loss.
Silos with blocks of the same shape are stacked together with their clients.

In the Gram form the first layer is never touched during the steps: Q steps on one batch move it only within the span of the
client's rows X, so its outputs follow from `X X^T`. With G the gradient at its outputs Z, decay a and step size eta,

    Z <- a Z - eta (X X^T + 1) G,    S <- a S + eta G,    and in the end    W = c W0 - S^T X.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from crosshatch.simulator.local.chain import Chain, activate, as_chain, slope
from crosshatch.simulator.local.problem import Problem
from crosshatch.task.fusion import Head, Sum

_BUCKETS = 4


@dataclass
class Weights:
    """One layer of all clients of a bucket: weight (clients, outputs, inputs), bias (clients, 1, outputs) or None."""

    weight: Tensor
    bias: Tensor | None


@dataclass(frozen=True)
class Rows:
    """Padded samples of a bucket in one part; `scale` (clients, m, 1) is one over the client's count, 0 where padded."""

    x: Tensor
    y: Tensor | None
    rest: Tensor | None
    derivative: Tensor | None
    scale: Tensor
    alive: Tensor | None  # (clients, 1, 1) False: no rows in this part; None: all have some
    rows: Tensor  # (clients, m) row of the stacked samples


def chains(problem: Problem) -> tuple[Chain, Chain] | None:
    """The block's and the head's layers (none for a sum), or None where stacking by hand is impossible."""
    block = as_chain(problem.task.blocks[problem.silo])
    if block is None:
        return None
    fusion = problem.task.fusion
    head = () if isinstance(fusion, Sum) or problem.parts[0].known.derivative is not None else as_chain(fusion.module)
    return None if head is None else (block, head)


def solve_stacked(problems: Sequence[Problem], weights: Sequence[Tensor], *, keep: bool, gram: bool) -> list[Tensor]:
    """For problems alike in shape and settings: each one's weighted sum (p,), or all its clients' blocks (clients, p)."""
    shapes = chains(problems[0])
    assert shapes is not None
    stack = _Stack(problems, *shapes)
    like = problems[0].start
    totals = [like.new_zeros((p.clients, p.start.shape[-1]) if keep else (p.start.shape[-1],)) for p in problems]
    for jobs in _buckets(stack.most_rows):
        result = _solve_bucket(stack, jobs, gram=gram)
        for i, where in stack.by_problem(jobs):
            mine = torch.as_tensor(jobs[where] - stack.first_job[i])
            rows = result[torch.as_tensor(where)] if len(where) != len(jobs) else result
            if keep:
                totals[i][mine] = rows
            else:
                totals[i] += weights[i].to(like.dtype)[mine] @ rows
    return totals


class _Stack:
    """The samples and starts of several problems behind one another; a job is one client of one of them."""

    def __init__(self, problems: Sequence[Problem], block: Chain, head: Chain) -> None:
        self.problems = problems
        self.block, self.head = block, head
        self.first_job = np.cumsum([0, *(p.clients for p in problems)])
        parts = len(problems[0].parts)
        self.counts = [np.concatenate([p.parts[s].counts for p in problems]) for s in range(parts)]
        self.most_rows: npt.NDArray[np.int64] = np.max(self.counts, axis=0)
        self.x = [_join([p.parts[s].x.flatten(1) for p in problems]) for s in range(parts)]
        self.y = [_join_known([p.parts[s].known.y for p in problems]) for s in range(parts)]
        self.rest = [_join_known([p.parts[s].known.rest for p in problems]) for s in range(parts)]
        self.derivative = [_join_known([p.parts[s].known.derivative for p in problems]) for s in range(parts)]

    def by_problem(self, jobs: npt.NDArray[np.int64]) -> list[tuple[int, npt.NDArray[np.int64]]]:
        """Positions in `jobs` that belong to each problem."""
        owner = np.searchsorted(self.first_job, jobs, side="right") - 1
        return [(int(i), np.flatnonzero(owner == i)) for i in np.unique(owner)]

    def start(self, jobs: npt.NDArray[np.int64]) -> Tensor:
        """The blocks these jobs start from, (jobs, p)."""
        pieces = []
        for i, where in self.by_problem(jobs):
            start = self.problems[i].start
            local = torch.as_tensor(jobs[where] - self.first_job[i])
            pieces.append(start.expand(len(where), -1) if start.dim() == 1 else start[local])
        return torch.cat(pieces) if len(pieces) > 1 else pieces[0]

    def stale_head(self, jobs: npt.NDArray[np.int64]) -> Tensor | None:
        """The head as received, (jobs, h), for silos which do not hold it."""
        if not self.head or self.problems[0].head is None:
            return None
        heads = [self.problems[i].head for i, where in self.by_problem(jobs) for _ in where]
        return torch.stack([h for h in heads if h is not None])

    def rows(self, jobs: npt.NDArray[np.int64], part: int) -> Rows:
        """The padded samples of these jobs in a part."""
        counts = self.counts[part]
        offsets = np.concatenate([[0], np.cumsum(counts)])
        longest = max(1, int(counts[jobs].max()))
        position = np.arange(longest)
        real = position < counts[jobs][:, None]
        index = np.where(real, offsets[jobs][:, None] + position, 0)
        x = self.x[part]
        scale = torch.as_tensor(real / np.maximum(counts[jobs], 1)[:, None]).to(x.dtype).unsqueeze(-1)
        flat = torch.as_tensor(index.reshape(-1))
        whole = real.all() and np.array_equal(flat.numpy(), np.arange(x.shape[0]))

        def pick(t: Tensor | None) -> Tensor | None:
            if t is None:
                return None
            chosen = t if whole else t.index_select(0, flat)
            return chosen.view(len(jobs), longest, *t.shape[1:])

        picked = pick(x)
        assert picked is not None
        alive = None if (counts[jobs] > 0).all() else torch.as_tensor(counts[jobs] > 0).view(-1, 1, 1)
        return Rows(
            picked, pick(self.y[part]), pick(self.rest[part]), pick(self.derivative[part]), scale, alive,
            torch.as_tensor(index),
        )  # fmt: skip


def _join(tensors: list[Tensor]) -> Tensor:
    return tensors[0] if len(tensors) == 1 else torch.cat(tensors)


def _join_known(tensors: list[Tensor | None]) -> Tensor | None:
    present = [t for t in tensors if t is not None]
    return _join(present) if present else None


def _buckets(most_rows: npt.NDArray[np.int64]) -> list[npt.NDArray[np.int64]]:
    """Jobs in up to four groups of similar row counts; each keeps the jobs' order."""
    if most_rows.max() <= most_rows.min() * 1.1:
        return [np.arange(len(most_rows))]
    ranked = np.argsort(most_rows, kind="stable")
    return [np.sort(piece) for piece in np.array_split(ranked, _BUCKETS) if len(piece)]


def _layers(flat: Tensor, chain: Chain) -> list[Weights]:
    """Views of the clients' flat vectors (clients, p), layer by layer."""
    layers = []
    offset = 0
    for layer in chain:
        end = offset + layer.outputs * layer.inputs
        weight = flat[:, offset:end].view(-1, layer.outputs, layer.inputs)
        bias = flat[:, end : offset + layer.size].unsqueeze(1) if layer.bias else None
        layers.append(Weights(weight, bias))
        offset += layer.size
    return layers


def _forward(layers: Sequence[Weights], chain: Chain, x: Tensor, first: Tensor | None = None) -> list[Tensor]:
    """Outputs of every layer (clients, m, outputs); `first` are the first layer's, before its activation."""
    outputs: list[Tensor] = []
    for number, (layer, weights) in enumerate(zip(chain, layers, strict=True)):
        if number == 0 and first is not None:
            z = first.clone() if layer.activation != "none" else first
        elif weights.bias is None:
            z = torch.bmm(x, weights.weight.mT)
        else:
            z = torch.baddbmm(weights.bias, x, weights.weight.mT)
        x = activate(layer.activation, z)
        outputs.append(x)
    return outputs


def _solve_bucket(stack: _Stack, jobs: npt.NDArray[np.int64], *, gram: bool) -> Tensor:
    """Blocks of these jobs after all steps, (jobs, p)."""
    problem = stack.problems[0]
    flat = stack.start(jobs).clone(memory_format=torch.contiguous_format)
    anchor = flat.clone() if problem.pull else None
    parts = [stack.rows(jobs, s) for s in range(len(problem.parts))]
    first = _Gram(stack.block, flat, parts[0], problem) if gram else None
    for step in range(problem.steps):
        rows = parts[(problem.first + step) % len(parts)]
        before = flat.clone() if rows.alive is not None else None
        _step(stack, jobs, flat, anchor, rows, first)
        if before is not None and rows.alive is not None:
            flat = torch.where(rows.alive.squeeze(-1), flat, before)
    if first is not None:
        first.finish(flat)
    return flat


def _step(
    stack: _Stack, jobs: npt.NDArray[np.int64], flat: Tensor, anchor: Tensor | None, rows: Rows, first: _Gram | None
) -> None:
    """One gradient step of all jobs, in place."""
    problem = stack.problems[0]
    size = sum(layer.size for layer in stack.block)
    layers = _layers(flat[:, :size], stack.block)
    outputs = _forward(layers, stack.block, rows.x, first.outputs if first else None)
    head_weights, head_outputs, beside = _head_forward(stack, jobs, flat[:, size:], outputs[-1], rows)
    if rows.derivative is not None:
        gradient = rows.derivative * rows.scale
    else:
        assert rows.y is not None
        assert rows.rest is not None
        scores = head_outputs[-1] if head_outputs else outputs[-1] + rows.rest
        gradient = problem.task.loss.derivative(scores, rows.y).mul_(rows.scale)
    eta, regulariser = problem.step_size, problem.task.regulariser
    decay = 1 - eta * (regulariser.l2 + problem.pull)
    trains_head = head_weights is not None and problem.task.holds_head(problem.silo)
    if head_weights is not None and beside is not None:
        gradient = _backward(stack.head, head_weights, head_outputs, beside, gradient, eta, decay, update=trains_head)
        low, high = problem.columns
        gradient = gradient[..., low:high].contiguous()
    if first is None:
        _backward(stack.block, layers, outputs, rows.x, gradient, eta, decay, update=True, need_input=False)
    else:
        if len(stack.block) > 1:
            rest = slice(1, None)
            gradient = _backward(
                stack.block[rest], layers[1:], outputs[1:], outputs[0], gradient, eta, decay, update=True
            )
        first.step(slope(stack.block[0].activation, gradient, outputs[0]), eta, decay)
    if anchor is not None:
        skip = stack.block[0].size if first is not None else 0  # the Gram form keeps its own account of the pull
        flat[:, skip:].add_(anchor[:, skip:], alpha=eta * problem.pull)
    if regulariser.l1:
        flat.copy_(regulariser.proximal(flat, eta))


def _head_forward(
    stack: _Stack, jobs: npt.NDArray[np.int64], trained: Tensor, own: Tensor, rows: Rows
) -> tuple[list[Weights] | None, list[Tensor], Tensor | None]:
    """Head layers, their outputs and their input, all embeddings side by side; nothing for a sum."""
    problem = stack.problems[0]
    if not isinstance(problem.task.fusion, Head) or rows.derivative is not None:
        return None, [], None
    assert rows.rest is not None
    received = stack.stale_head(jobs)
    weights = _layers(trained if received is None else received, stack.head)
    beside = problem.beside(own, rows.rest)
    return weights, _forward(weights, stack.head, beside), beside


def _backward(
    chain: Chain,
    layers: Sequence[Weights],
    outputs: Sequence[Tensor],
    x: Tensor,
    gradient: Tensor,
    eta: float,
    decay: float,
    *,
    update: bool,
    need_input: bool = True,
) -> Tensor:
    """Gradient at the chain's input; with `update` the layers take their step on the way, in place."""
    for number in range(len(chain) - 1, -1, -1):
        weights, layer = layers[number], chain[number]
        below = x if number == 0 else outputs[number - 1]
        gradient = slope(layer.activation, gradient, outputs[number])
        passed_on = torch.bmm(gradient, weights.weight) if number or need_input else gradient
        if update:
            weights.weight.baddbmm_(gradient.mT, below, beta=decay, alpha=-eta)
            if weights.bias is not None:
                weights.bias.mul_(decay).sub_(gradient.sum(1, keepdim=True), alpha=eta)
        gradient = passed_on
    return gradient


class _Gram:
    """The first layer of a bucket in Gram form: its outputs Z, the accumulated S, and the factor c of the start."""

    def __init__(self, block: Chain, flat: Tensor, rows: Rows, problem: Problem) -> None:
        self.layer, self.x, self.pull = block[0], rows.x, problem.pull
        weights = _layers(flat[:, : self.layer.size], block[:1])
        self.outputs = _forward(weights, (replace(self.layer, activation="none"),), rows.x)[0]
        self.begin = self.outputs.clone() if problem.pull else None
        self.gram = torch.bmm(rows.x, rows.x.mT)
        if self.layer.bias:
            self.gram += 1
        self.accumulated = torch.zeros_like(self.outputs)
        self.factor = 1.0

    def step(self, gradient: Tensor, eta: float, decay: float) -> None:
        """One gradient step on the outputs."""
        self.outputs.baddbmm_(self.gram, gradient, beta=decay, alpha=-eta)
        self.accumulated.mul_(decay).add_(gradient, alpha=eta)
        self.factor *= decay
        if self.begin is not None:
            self.outputs.add_(self.begin, alpha=eta * self.pull)
            self.factor += eta * self.pull

    def finish(self, flat: Tensor) -> None:
        """Write the layer's weights into the flat vectors."""
        weights = _layers(flat[:, : self.layer.size], (self.layer,))[0]
        weights.weight.baddbmm_(self.accumulated.mT, self.x, beta=self.factor, alpha=-1)
        if weights.bias is not None:
            weights.bias.mul_(self.factor).sub_(self.accumulated.sum(1, keepdim=True))
