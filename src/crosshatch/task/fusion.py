"""How embeddings become scores: their sum, or a trained head on all of them side by side.

A fusion joins the silos' embeddings; a head makes scores of what was joined, and a sum is the scores already. Both
answer the same questions, so nobody else has to know which of them is used.

Shapes: a silo's embeddings (..., n, e), joined (..., n, j), scores (..., n, c), labels y (..., n).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import ClassVar, TypeAlias

import torch
from torch import Tensor, nn
from torch.func import functional_call

from crosshatch.errors import ModelError
from crosshatch.task.fit import check_head, refuse_modules
from crosshatch.task.losses import Loss
from crosshatch.task.outputs import checked
from crosshatch.task.probe import copied
from crosshatch.trees import Layout

Apply: TypeAlias = Callable[[Tensor], Tensor]
"""A head under some weights: from what was joined (n, j) to scores (n, c)."""
Columns: TypeAlias = tuple[int, int]
"""Where a silo's embeddings stand in what was joined: the first column, and the one behind the last."""


@dataclass(frozen=True)
class Sum:
    """Scores are the sum of the blocks' outputs; every block has as many outputs as there are scores.

    >>> from crosshatch.task.losses import Squared
    >>> from crosshatch.task.task import Task
    >>> Task((nn.Linear(3, 1), nn.Linear(2, 1)), Sum(), Squared()).fusion
    Sum()
    """

    module: ClassVar[None] = None  # there is no head,
    holder: ClassVar[None] = None  # nobody trains it,
    layout: ClassVar[None] = None  # and it has no numbers

    def columns(self, widths: Sequence[int], silo: int) -> Columns:
        """Where a silo's outputs stand in the sum: in all of it."""
        return 0, widths[silo]

    def others_width(self, widths: Sequence[int], silo: int) -> int:
        """Numbers per sample of the others' part: those of their sum."""
        return widths[silo]

    def others(self, embeddings: Sequence[Tensor], receivers: Sequence[int]) -> list[Tensor]:
        """For each receiver the sum of the other silos' embeddings (n, c)."""
        if len(embeddings) == 2:
            return [embeddings[1 - j] for j in receivers]
        # No difference of sums: what cancels would leave its rounding behind.
        every = torch.stack(list(embeddings))
        rest = torch.zeros_like(every)
        rest[1:] += every[:-1].cumsum(0)
        rest[:-1] += every[1:].flip(0).cumsum(0).flip(0)
        by_silo = rest.unbind(0)
        return [by_silo[j] for j in receivers]

    def join(self, own: Tensor, others: Tensor, columns: Columns) -> Tensor:  # noqa: ARG002 - the same question to both
        """The scores, of a silo's own embeddings and the others' part."""
        return own + others

    def join_all(self, embeddings: Sequence[Tensor]) -> Tensor:
        return embeddings[0] + embeddings[1] if len(embeddings) == 2 else torch.stack(list(embeddings)).sum(0)

    def scores(self, joined: Tensor, head: Apply | None) -> Tensor:
        assert head is None
        return joined

    def derivative(
        self, loss: Loss, own: Tensor, others: Tensor, y: Tensor, *, columns: Columns, head: Apply | None
    ) -> Tensor:
        """Each sample's derivative of its loss at the silo's own embeddings (..., n, c): the same for every silo."""
        assert head is None
        return loss.derivative(self.join(own, others, columns), y)

    def under(self, flat: Tensor | None) -> None:
        assert flat is None

    def to(self, device: str | torch.device, dtype: torch.dtype) -> Sum:  # noqa: ARG002
        return self

    def check(self, silos: int) -> None:
        """Any number of silos can be added up."""

    def check_width(self, silo: str, width: int, scores: int) -> None:
        """Refuse embeddings that cannot be scores."""
        if width != scores:
            raise ModelError(
                f"silo '{silo}' has embeddings of width {width}, the sum needs {scores} (one per score): "
                f"set model.outputs = {scores} or model.fusion = 'head'"
            )

    def check_head(self, embeddings: Sequence[Tensor], scores: int) -> None:
        """There is no head to check."""


@dataclass(frozen=True)
class Head:
    """Scores are `module(concatenated embeddings)`; the head is trained by the silo at index `holder`.

    Other silos work with the head as they last received it.

    >>> Head(nn.Linear(8 + 4, 1), holder=0).holder  # embeddings of width 8 and 4
    0
    """

    module: nn.Module
    holder: int

    @cached_property
    def layout(self) -> Layout:
        return Layout.of(self.module)

    def columns(self, widths: Sequence[int], silo: int) -> Columns:
        """Where a silo's embeddings stand among all of them.

        >>> Head(nn.Linear(8 + 4, 1), holder=0).columns((8, 4), silo=1)
        (8, 12)
        """
        low = sum(widths[:silo])
        return low, low + widths[silo]

    def others_width(self, widths: Sequence[int], silo: int) -> int:  # noqa: ARG002
        """Numbers per sample of the others' part: all embeddings, the silo's own columns to be overwritten."""
        return sum(widths)

    def others(self, embeddings: Sequence[Tensor], receivers: Sequence[int]) -> list[Tensor]:
        """For each receiver all embeddings side by side (n, all e); its own columns are overwritten when they join."""
        beside = self.join_all(embeddings)
        return [beside for _ in receivers]

    def join(self, own: Tensor, others: Tensor, columns: Columns) -> Tensor:
        """All embeddings side by side (..., n, all e), the silo's columns replaced by its own."""
        low, high = columns
        return torch.cat([others[..., :low], own, others[..., high:]], dim=-1)

    def join_all(self, embeddings: Sequence[Tensor]) -> Tensor:
        return torch.cat(list(embeddings), dim=-1)

    def scores(self, joined: Tensor, head: Apply | None) -> Tensor:
        assert head is not None
        return head(joined)

    def derivative(
        self, loss: Loss, own: Tensor, others: Tensor, y: Tensor, *, columns: Columns, head: Apply | None
    ) -> Tensor:
        """Each sample's derivative of its loss at the silo's own embeddings (n, e), back through the head."""
        leaf = own.detach().requires_grad_()
        scores = self.scores(self.join(leaf, others, columns), head)
        return torch.autograd.grad(loss.value(scores, y).sum(), leaf)[0]

    def under(self, flat: Tensor | None) -> Apply:
        assert flat is not None
        return partial(self._apply, flat)

    def _apply(self, flat: Tensor, joined: Tensor) -> Tensor:
        return checked(self.module, functional_call(self.module, self.layout.views(flat), (joined,)), joined)

    def to(self, device: str | torch.device, dtype: torch.dtype) -> Head:
        return Head(copied("the head", self.module).to(device=device, dtype=dtype), self.holder)

    def check(self, silos: int) -> None:
        refuse_modules("the head", self.module)
        if not 0 <= self.holder < silos:
            raise ModelError(f"head without a holder: silo number {self.holder} of {silos}")

    def check_width(self, silo: str, width: int, scores: int) -> None:
        """Embeddings may have any width."""

    def check_head(self, embeddings: Sequence[Tensor], scores: int) -> None:
        check_head(self.module, self.join_all(embeddings), scores)


Fusion: TypeAlias = Sum | Head
