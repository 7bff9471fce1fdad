"""The local work of one silo in a round, as the strategies see it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from crosshatch.local.anchors import Anchors
from crosshatch.local.local_steps import LocalSteps
from crosshatch.local.modules import call
from crosshatch.task.losses import SampleWeighted
from crosshatch.task.task import Task
from crosshatch.task.tie import Sides, Tie


@dataclass(frozen=True)
class LossInputs:
    """What the loss of a silo's samples needs besides its own embeddings (n rows, in the silo's own order).

    Either the labels with the others' embeddings, or the derivative that the label's holder sent, or what a linear
    block makes of it, where nobody else can read it (`gradient`; it stays for all steps); in a transfer task the
    components that the other silo told. `start` is where the silo stood at the exchange, for steps that look ahead or
    let derivatives go on.
    """

    y: Tensor | None = None  # (n,)
    rest: Tensor | None = None  # sum: (n, c), the others' sum; head: (n, all e), own columns to be overwritten
    derivative: Tensor | None = None  # (n, e), labels held elsewhere
    start: Tensor | None = None  # (n, c) sum: the silo's own embeddings then; head: the scores; `Tie.starting_point`
    gradient: Tensor | None = None  # (p,) of the mean loss over all rows, where the derivative came encrypted

    def each(self, of: Callable[[Tensor], Tensor]) -> LossInputs:
        """The same with what a function makes of every row's part."""
        tensors = (self.y, self.rest, self.derivative, self.start)
        return LossInputs(*(None if tensor is None else of(tensor) for tensor in tensors))

    def sides(self, transfer: Tie, own: Tensor, class_mean: Tensor | None) -> Sides:
        """Both sides of a transfer task, one of them told; `class_mean` is that of the silo with the labels alone."""
        assert self.rest is not None
        if class_mean is None:
            return transfer.at_other(own, self.rest)
        assert self.y is not None
        return transfer.at_labels(own, self.rest, class_mean, self.y)

    @classmethod
    def joined(cls, inputs: Sequence[LossInputs], join: Callable[[Any], Tensor] = torch.cat) -> LossInputs:
        """Those of several sets of rows, one behind another; or side by side, by `torch.stack`."""
        columns = zip(*((one.y, one.rest, one.derivative, one.start) for one in inputs), strict=True)
        return cls(*(None if column[0] is None else join(column) for column in columns))

    def rows(self, where: slice) -> LossInputs:
        """The same for some of the rows."""
        return self.each(lambda tensor: tensor[where])


@dataclass(frozen=True)
class Part:
    """The samples of some local steps: rows ordered by client, `counts[i]` of them at the i-th client at work."""

    x: Tensor
    loss_inputs: LossInputs
    counts: npt.NDArray[np.int64]

    @property
    def offsets(self) -> npt.NDArray[np.int64]:
        """Where each client's rows begin, and the end."""
        return np.concatenate([[0], np.cumsum(self.counts)])

    def rows(self, low: int, high: int) -> Part:
        """One client's samples, which are these rows."""
        where = slice(low, high)
        return Part(self.x[where], self.loss_inputs.rows(where), np.array([high - low]))

    def at_clients(self, then: npt.NDArray[np.int64], now: npt.NDArray[np.int64], newest: Sequence[Part]) -> Part:
        """What of a part whose clients at work were those numbered `then` is held by those numbered `now`.

        A client that holds nothing of it takes its samples of the first of the `newest` parts that it has some of.
        """
        place = np.minimum(np.searchsorted(then, now), len(then) - 1)
        counts = np.where(then[place] == now, self.counts[place], 0)
        if np.array_equal(then, now) and counts.all():
            return self
        first, parts, length = self.offsets[place], [self], len(self.x)
        for other in newest:
            if counts.all():
                break
            first = np.where(counts > 0, first, length + other.offsets[:-1])
            counts = np.where(counts > 0, counts, other.counts)
            parts.append(other)
            length += len(other.x)
        rows = np.repeat(first - np.cumsum(counts) + counts, counts) + np.arange(counts.sum())
        index = torch.as_tensor(rows, device=self.x.device)
        x, inputs = self.x, self.loss_inputs
        if len(parts) > 1:
            x, inputs = torch.cat([one.x for one in parts]), LossInputs.joined([one.loss_inputs for one in parts])
        return Part(x.index_select(0, index), inputs.each(lambda tensor: tensor.index_select(0, index)), counts)


@dataclass(frozen=True)
class Problem:
    """Gradient steps at each of a silo's clients at work, as `local` says.

    Step q uses part `(first + q) % len(parts)`; a client without rows in it stays where it is. The gradient is that of
    the mean loss over the client's rows, plus the regulariser's on the block (a head has none), plus `proximal` times
    the difference from its start. With an optimiser (`state`) the step goes along what that makes of the gradient.

    The loss's derivative is taken as if the others moved along: at `anticipation` times as far from where the exchange
    found the scores as this silo alone has moved them. A derivative that was sent stays, or goes on (`continued`).
    """

    task: Task
    silo: int
    parts: tuple[Part, ...]
    start: Tensor  # (p,) the same for all, or (clients, p)
    head: Tensor | None  # the head as received; None at its holder, and for a sum
    columns: tuple[int, int]  # where this silo's embedding stands in what is joined
    local: LocalSteps
    seed: tuple[int, ...] = (0,)  # the run's seed and the round, for blocks which draw random numbers
    numbers: npt.NDArray[np.int64] | None = None  # of the clients at work in their silo; None: one after the other
    state: Tensor | None = None  # (clients, s) of the task's optimiser, see `moments.py`; None: plain steps
    anchors: Anchors | None = None  # whose mean the class mean is, at its holder in a transfer task

    @property
    def clients(self) -> int:
        """How many clients are at work."""
        return len(self.parts[0].counts)

    @property
    def at_work(self) -> npt.NDArray[np.int64]:
        """The numbers in the silo of the clients at work."""
        return np.arange(self.clients) if self.numbers is None else self.numbers

    def head_under(self, held: Tensor | None) -> Callable[[Tensor], Tensor] | None:
        """The head under the weights held here or else as received; None for a sum."""
        head, flat = self.task.head, self.head if held is None else held
        return None if head is None or flat is None else partial(call, head, flat)

    def anticipated(self, moved: Tensor, start: Tensor | None) -> Tensor:
        """Where the others would have taken what this silo alone has moved from its start, had they moved along."""
        if self.local.anticipation == 1:
            return moved
        assert start is not None
        return torch.lerp(start, moved, self.local.anticipation)

    def derivative(self, own: Tensor, inputs: LossInputs) -> Tensor:
        """Each row's derivative of its loss at the block's outputs (..., n, e), for a sum or where it was sent."""
        start, sent = inputs.start, inputs.derivative
        if sent is not None and self.local.continued:
            assert start is not None
            assert not isinstance(self.task.loss, SampleWeighted), "refused: a derivative does not tell a weight"
            sent = self.task.loss.continued(sent, (own - start) * self.local.anticipation)
        if sent is not None:
            return sent.clone()
        assert inputs.rest is not None
        assert inputs.y is not None
        assert self.task.head is None
        scores = self.task.fusion.join(self.anticipated(own, start), inputs.rest, self.columns)
        return self.task.loss.derivative(scores, inputs.y)

    def slope(
        self, embedding: Tensor, inputs: LossInputs, head: Callable[[Tensor], Tensor] | None
    ) -> tuple[Tensor, Tensor]:
        """Outputs (n, ...), and each row's derivative at them: the embedding's, or the scores' where a head follows."""
        if self.task.head is None or inputs.derivative is not None:
            return embedding, self.derivative(embedding.detach(), inputs)
        assert inputs.rest is not None
        assert inputs.y is not None
        scores = self.task.fusion.scores(self.task.fusion.join(embedding, inputs.rest, self.columns), head)
        return scores, self.task.loss.derivative(self.anticipated(scores.detach(), inputs.start), inputs.y)

    def transfer_slopes(self, own: Tensor, mean: Tensor | None, part: Part) -> tuple[Tensor, Tensor | None]:
        """What the mean objective of a transfer task over a part's rows has as derivatives.

        At own embeddings (n, d), and at the class mean (d,), which is its holder's.
        """
        transfer, inputs = self.task.transfer, part.loss_inputs
        assert transfer is not None
        start = None if self.local.anticipation == 1 else inputs.start
        at = transfer.slopes(self.task.loss, inputs.sides(transfer, own, mean), start, self.local.anticipation)
        if mean is None:
            return at.u_b / len(own), None
        assert inputs.y is not None
        return at.u_a / len(own), transfer.class_mean(at.signed_mean, inputs.y)
