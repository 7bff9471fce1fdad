"""One silo's own part of the model, computed as plainly as autograd allows."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor, nn
from torch.func import functional_call

from crosshatch.local.anchors import Anchors
from crosshatch.local.local_steps import LocalSteps
from crosshatch.local.modules import evaluating
from crosshatch.local.moments import Moments
from crosshatch.parties.holdings.vectors import Vectors
from crosshatch.task.losses import Loss, SampleWeighted
from crosshatch.task.regulariser import Regulariser
from crosshatch.task.task import Task
from crosshatch.task.tie import Tie
from crosshatch.trees import Layout, flatten


@dataclass(frozen=True)
class KnownOfOthers:
    """What a client knows of the others for its rows (n): labels and embeddings, or derivatives.

    In a transfer task without labels `rest` (n, 2 d) are the other's embeddings and, behind them, y Phi_A.
    """

    y: Tensor | None = None  # (n,)
    rest: Tensor | None = None  # (n, c) the others' sum, or (n, their e) all of theirs side by side for a head
    derivative: Tensor | None = None  # (n, e) of the loss, where another silo holds the labels
    own: Tensor | None = None  # (n, e) the client's own embeddings at that exchange
    head: Tensor | None = None  # the head at that exchange, where there is one


@dataclass(frozen=True)
class Model:
    """A silo's block, and the head: trained with it at its holder, used as received where labels are shared.

    Where another silo holds labels and head, there is none here.
    """

    vectors: Vectors
    block: nn.Module
    head: nn.Module | None
    holds_head: bool
    low: int  # how many numbers stand before this silo's embedding among all of them
    loss: Loss
    regulariser: Regulariser
    transfer: Tie | None = None

    @classmethod
    def of(cls, task: Task, silo: int, widths: Sequence[int], *, knows: bool) -> Model:
        """The part of silo number `silo`; `knows` says whether it has labels."""
        head = task.head if knows else None
        return cls(
            Vectors.of(task, silo), task.blocks[silo], head, task.holds_head(silo), sum(widths[:silo]), task.loss,
            task.regulariser, task.transfer,
        )  # fmt: skip

    def filled_head(self, arrived: Tensor) -> Tensor:
        """The whole head from what travelled; everybody has the rest of it from the start."""
        assert self.head is not None
        if self.vectors.trained_head is None:
            return arrived.clone()
        return flatten(self.head).index_copy(0, self.vectors.trained_head, arrived)

    @cached_property
    def _layout(self) -> Layout:
        return Layout.of(self.block)

    @cached_property
    def _head_layout(self) -> Layout:
        assert self.head is not None
        return Layout.of(self.head)

    def embed(self, weights: Tensor, x: Tensor) -> Tensor:
        """Embeddings (n, e) of samples x (n, ...)."""
        views = self._layout.views(weights[: self.vectors.block_size])
        out: Tensor = functional_call(self.block, views, (x,))
        return out

    def apply_head(self, head: Tensor, embeddings: Tensor) -> Tensor:
        """Scores (n, c) of all embeddings side by side."""
        assert self.head is not None
        scores: Tensor = functional_call(self.head, self._head_layout.views(head), (embeddings,))
        return scores

    def class_mean(self, weights: Tensor, anchors: Anchors, *, every: bool = False) -> Tensor:
        """Phi_A of the round's samples, or of all."""
        return anchors.class_mean(lambda x: self.embed(weights, x), every=every)

    def _transfer_loss(
        self, transfer: Tie, own: Tensor, known: KnownOfOthers, mean: Tensor | None, local: LocalSteps
    ) -> Tensor:
        """The mean over the rows of what ties two silos together, or what has its gradient; `mean` is Phi_A."""
        assert known.rest is not None
        margins, apart = self._margins(own, known, mean)
        square = transfer.alignment == "distance"
        aligned = apart.square().sum(1) if square else -(own * known.rest[:, : own.shape[1]]).sum(1)
        if local.anticipation == 1:
            values = self.loss.value(margins, torch.ones(len(own)).to(own))
        else:
            assert known.own is not None
            margins_then, apart_then = self._margins(known.own, known, known.head)
            ahead = margins_then + local.anticipation * (margins - margins_then)
            values = (margins * self.loss.derivative(ahead.detach(), torch.ones(len(own)).to(own))).sum(1)
            if square:
                far = apart_then + local.anticipation * (apart - apart_then)
                aligned = (2 * far.detach() * apart).sum(1)
        return (values + transfer.weight * aligned).mean()

    def _margins(self, own: Tensor, known: KnownOfOthers, mean: Tensor | None) -> tuple[Tensor, Tensor]:
        """y phi (n, 1), and how far own embeddings are from the other's (n, d)."""
        assert known.rest is not None
        other, signed = known.rest[:, : own.shape[1]], known.rest[:, own.shape[1] :]
        if known.y is not None:
            assert mean is not None
            signed = (2 * known.y - 1)[:, None] * mean
        return (signed * (other if self.holds_head else own)).sum(1, keepdim=True), own - other

    def mean_loss(
        self,
        weights: Tensor,
        x: Tensor,
        known: KnownOfOthers,
        head: Tensor | None,
        local: LocalSteps,
        anchors: Anchors | None = None,
    ) -> Tensor:
        """Over the rows x (n, ...), or what has its gradient; `head` is the one received, the holder has its own."""
        own = self.embed(weights, x)
        if self.transfer is not None:
            mean = known.head if anchors is None else self.class_mean(weights, anchors)
            return self._transfer_loss(self.transfer, own, known, mean, local)
        if known.derivative is not None:
            derivative = known.derivative
            if local.continued:
                assert known.own is not None
                assert not isinstance(self.loss, SampleWeighted)
                moved = local.anticipation * (own.detach() - known.own)
                derivative = self.loss.continued(derivative, moved)
            return (own * derivative).sum(-1).mean()
        assert known.y is not None
        used = self.vectors.head_of(weights) if self.holds_head else head
        scores = self._scores(own, known, used)
        if local.anticipation == 1:
            return self.loss.value(scores, known.y).mean()
        assert known.own is not None
        then = self._scores(known.own, known, known.head)
        derivative = self.loss.derivative(then + local.anticipation * (scores - then).detach(), known.y)
        return (scores * derivative.detach()).sum(-1).mean()

    def _scores(self, own: Tensor, known: KnownOfOthers, head: Tensor | None) -> Tensor:
        assert known.rest is not None
        if self.head is None:
            return own + known.rest
        assert head is not None, "a client works with a head nobody sent it"
        beside = torch.cat([known.rest[:, : self.low], own, known.rest[:, self.low :]], dim=1)
        return self.apply_head(head, beside)

    def judged(self, weights: Tensor, known: KnownOfOthers, head: Tensor | None) -> tuple[Tensor, Tensor]:
        """Scores (n, c) of its rows, from its own embeddings and those of the others, in evaluation mode.

        Beside them how much each row adds to the loss because its embeddings are tied together (n,).
        """
        assert known.own is not None
        assert known.rest is not None
        with torch.no_grad(), nullcontext() if self.head is None else evaluating(self.head):
            scores = self._scores(known.own, known, self.vectors.head_of(weights) if self.holds_head else head)
            if self.transfer is None:
                return scores, scores.new_zeros(len(scores))
            return scores, self.transfer.aligned(known.own, known.rest)

    def step(
        self,
        weights: Tensor,
        x: Tensor,
        known: KnownOfOthers,
        head: Tensor | None,
        local: LocalSteps,
        *,
        start: Tensor,
        moments: Moments | None,
        anchors: Anchors | None = None,
    ) -> tuple[Tensor, Moments | None]:
        """One gradient step, with a pull towards the start and the regulariser on the block; the moments after it."""
        leaf, trained = weights.clone().requires_grad_(), self.vectors.trained
        (gradient,) = torch.autograd.grad(self.mean_loss(leaf, x, known, head, local, anchors), leaf)
        weighed = torch.arange(len(weights)) < self.vectors.block_size
        if self.vectors.free is not None:
            weighed[: self.vectors.block_size] = ~self.vectors.free
        gradient = gradient + torch.where(weighed, self.regulariser.gradient(weights), torch.zeros_like(weights))
        gradient = gradient + local.proximal * (weights - start)
        if trained is not None:
            gradient = torch.zeros_like(gradient).index_copy(0, trained, gradient[trained])
        direction, now = (gradient, None) if moments is None else moments.after(gradient)
        after = weights - local.step_size * direction
        after = torch.where(weighed, self.regulariser.proximal(after, local.step_size), after)
        return (after if trained is None else start.index_copy(0, trained, after[trained])), now
