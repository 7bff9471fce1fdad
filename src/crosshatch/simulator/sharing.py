"""What clients know of the other silos after an exchange: embeddings with the labels, or derivatives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from crosshatch.data.federated import FederatedData
from crosshatch.simulator.batch import Batch
from crosshatch.simulator.coding import Coding
from crosshatch.simulator.local.chain import as_chain
from crosshatch.simulator.local.problem import Known
from crosshatch.simulator.values import Embeddings, Frozen
from crosshatch.task.fusion import Head, Sum
from crosshatch.task.task import Task


@dataclass(frozen=True)
class Sharing:
    """The numbers behind `share` and `share_derivatives`; the messages are `messages.Routes`."""

    data: FederatedData
    task: Task
    coding: Coding
    widths: tuple[int, ...]

    @cached_property
    def _plain(self) -> bool:
        """Whether the scores are the sum of what others get to see, the same if they are computed anew."""
        summed = isinstance(self.task.fusion, Sum) and "share" not in self.coding.codecs
        return summed and all(as_chain(block) is not None for block in self.task.blocks)

    def share(
        self, embeddings: Embeddings, batch: Batch, receivers: Sequence[int], *, to: int | None, one_step: bool
    ) -> Frozen:
        """Every receiver gets the others' part for its own samples, the labels it has itself.

        For `one_step` from the blocks these embeddings came from that is one derivative, the same in every silo.
        """
        if one_step and self._plain:
            return self._one_derivative(embeddings, batch, receivers)
        senders = [j for j in range(len(self.widths)) if j != to]
        arrived = self._arrive(embeddings, batch, senders, to=to)
        known: list[tuple[Known, ...] | None] = [None] * len(self.widths)
        for s, values in enumerate(zip(*arrived, strict=True)):
            labels = self._labels(batch, s)
            for j, rest in zip(receivers, self._others(values, receivers), strict=True):
                share = batch.shares[j][s]
                known[j] = (*(known[j] or ()), Known(y=share.sort(labels), rest=share.sort(rest)))
        head = embeddings.head
        if head is not None:
            head = self.coding.vector("share", "head", head, round=batch.round)
        return Frozen(tuple(known), head, embeddings.passes)

    def _one_derivative(self, embeddings: Embeddings, batch: Batch, receivers: Sequence[int]) -> Frozen:
        known: list[tuple[Known, ...] | None] = [None] * len(self.widths)
        rows = [
            self.task.loss.derivative(_sum(values), self._labels(batch, s))
            for s, values in enumerate(zip(*embeddings.values, strict=True))
        ]
        unsorted = tuple(Known(derivative=one) for one in rows)
        for j in receivers:
            shares = batch.shares[j]
            as_they_are = all(share.order is None for share in shares)
            known[j] = (
                unsorted
                if as_they_are
                else tuple(Known(derivative=s.sort(d)) for s, d in zip(shares, rows, strict=True))
            )
        return Frozen(tuple(known), None, embeddings.passes)

    def derivatives(
        self,
        embeddings: Embeddings,
        batch: Batch,
        *,
        around: Embeddings,
        holder: int,
        senders: Sequence[int],
        receivers: Sequence[int],
        step: int,
    ) -> Frozen:
        """The holder gets the others' embeddings, the other receivers the loss's derivatives at theirs."""
        arrived = self._arrive(embeddings, batch, [j for j in senders if j != holder], step=step)
        reference = [around.seen.get(j, values) for j, values in enumerate(around.values)]
        known: list[tuple[Known, ...] | None] = [None] * len(self.widths)
        for j in receivers:
            pieces = []
            for s, values in enumerate(zip(*reference, strict=True)):
                share, labels, (rest,) = batch.shares[j][s], self._labels(batch, s), self._others(values, [j])
                if j == holder:
                    pieces.append(Known(y=share.sort(labels), rest=share.sort(rest)))
                else:
                    pieces.append(Known(derivative=self._derivative(j, arrived[j][s], rest, labels, around.head)))
            known[j] = tuple(pieces) if j == holder else self._send_back(j, pieces, batch, holder, step)
        return Frozen(tuple(known), around.head, embeddings.passes)

    def columns(self, silo: int) -> tuple[int, int]:
        """Where a silo's embedding stands among all of them."""
        low = sum(self.widths[:silo])
        return low, low + self.widths[silo]

    def _arrive(
        self, embeddings: Embeddings, batch: Batch, senders: Sequence[int], *, to: int | None = None, step: int = 0
    ) -> list[tuple[Tensor, ...]]:
        """Every silo's embeddings as the others get to see them; who does not send was seen before."""
        if "share" in self.coding.codecs:
            for j in senders:
                name = str(j) if to is None else f"{j} to {to}"
                values = embeddings.values[j]
                embeddings.seen[j] = self.coding.embeddings("share", name, values, batch, j, step=step)
        return [embeddings.seen.get(j, values) for j, values in enumerate(embeddings.values)]

    def _others(self, values: Sequence[Tensor], receivers: Sequence[int]) -> list[Tensor]:
        """For each receiver what the other silos say: their sum, or all embeddings side by side."""
        if isinstance(self.task.fusion, Head):
            beside = torch.cat(list(values), dim=-1)
            return [beside for _ in receivers]
        # No difference of sums: what cancels would leave its rounding behind.
        every = torch.stack(list(values))
        rest = torch.zeros_like(every)
        rest[1:] += every[:-1].cumsum(0)
        rest[:-1] += every[1:].flip(0).cumsum(0).flip(0)
        return [rest[j] for j in receivers]

    def _labels(self, batch: Batch, part: int) -> Tensor:
        labels = self.data.y_train
        if batch.whole:
            return labels
        return labels.index_select(0, batch.ids(part, labels.device))

    def _derivative(self, silo: int, own: Tensor, rest: Tensor, labels: Tensor, head: Tensor | None) -> Tensor:
        """Each sample's derivative of the loss with respect to this silo's embedding (n, e)."""
        loss = self.task.loss
        if head is None:
            return loss.derivative(own + rest, labels)
        low, high = self.columns(silo)
        leaf = own.detach().requires_grad_()
        scores = self.task.apply_head(head, torch.cat([rest[:, :low], leaf, rest[:, high:]], dim=-1))
        return torch.autograd.grad(loss.value(scores, labels).sum(), leaf)[0]

    def _send_back(self, silo: int, known: Sequence[Known], batch: Batch, holder: int, step: int) -> tuple[Known, ...]:
        """Derivatives from the label holder's clients, as a silo gets to see them and in its own order."""
        rows = [piece.derivative for piece in known if piece.derivative is not None]
        arrived = self.coding.embeddings("derivatives", str(silo), rows, batch, holder, step=step)
        shares = batch.shares[silo]
        return tuple(Known(derivative=share.sort(d)) for share, d in zip(shares, arrived, strict=True))


def _sum(values: Sequence[Tensor]) -> Tensor:
    return values[0] + values[1] if len(values) == 2 else torch.stack(list(values)).sum(0)
