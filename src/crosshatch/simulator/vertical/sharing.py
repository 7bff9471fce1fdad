"""What clients know of the other silos after an exchange: embeddings with the labels, or derivatives."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial

import torch
from torch import Tensor

from crosshatch.data.federated import FederatedData
from crosshatch.local.passes import KeptPass
from crosshatch.local.problem import LossInputs
from crosshatch.local.read_chain import as_chain
from crosshatch.protocol.message_contents import About, Call
from crosshatch.protocol.names import derivative_channels, head_channel, share_channel
from crosshatch.simulator.vertical.arrivals import Arrivals
from crosshatch.simulator.vertical.batch import Batch
from crosshatch.simulator.vertical.embedding import Embeddings
from crosshatch.simulator.vertical.own_heads import with_own_heads
from crosshatch.simulator.vertical.sent import Components, Known, KnownBySilo, Rows, Sent, SentSoFar, Stood, StoodBySilo
from crosshatch.task.task import Task


@dataclass(frozen=True)
class Frozen:
    """What each silo's clients know of the others, part by part; worked out by silo when it is asked for.

    `known` serves any number of steps from anywhere. `at_start`, where it is given, is less work: the derivative at the
    embeddings of the exchange, for a single step from the blocks these came from. `stood` tells where silos stood at
    the exchange: their own embeddings for a sum, the scores for a head.
    """

    known: Known
    stood: Stood
    head: Tensor | None
    passes: tuple[KeptPass | None, ...]
    at_start: Known | None = None
    worked_out: bool = False  # for all silos, and nothing else is kept of the exchange

    @classmethod
    def of(cls, known: KnownBySilo, stood: StoodBySilo, head: Tensor | None) -> Frozen:
        """From what was worked out before."""
        return cls(
            lambda asking: {j: known[j] for j in asking}, lambda asking: {j: stood[j] for j in asking}, head,
            (None,) * len(known), worked_out=True,
        )  # fmt: skip

    def known_to(self, starts: Mapping[int, Tensor], *, once: bool) -> KnownBySilo:
        """What silos need to know that start from these weights, for one step on the first part (`once`) or any."""
        kept = [(self.passes[j], start) for j, start in starts.items()]
        if once and self.at_start is not None and all(one is not None and one.start is start for one, start in kept):
            return self.at_start(list(starts))
        return self.known(list(starts))


@dataclass(frozen=True)
class Sharing:
    """The numbers behind `share` and `share_derivatives`; the messages are those of `accounting.Accounts`."""

    data: FederatedData
    task: Task
    arrivals: Arrivals
    widths: tuple[int, ...]
    components: Components | None = None  # of a transfer task

    @cached_property
    def _sent(self) -> SentSoFar:
        return SentSoFar(len(self.widths))

    @cached_property
    def head_holder(self) -> int | None:
        """The silo that trains the head."""
        return self.task.head_holder

    @cached_property
    def _plain(self) -> bool:
        """Whether the scores are the sum of what others get to see, the same if they are computed anew."""
        summed = self.task.head is None and "share" not in self.arrivals.altered
        return summed and all(as_chain(block) is not None for block in self.task.blocks)

    def share(
        self,
        embeddings: Embeddings,
        batch: Batch,
        senders: Sequence[int],
        receivers: Sequence[int],
        *,
        to: int | None,
        use: int,
    ) -> Frozen:
        """Everybody (or silo `to`) gets the others' part for its own samples, the labels it has itself."""
        arrived = self._arrive(embeddings, batch, senders, to=to, use=use)
        head, with_head = self._send_head(embeddings.head, batch, senders, receivers, to, use)
        self._note(Sent(batch, {j: arrived[j] for j in senders}, to, head, with_head))
        anew = len(senders) >= len(self.widths) - (to is not None)  # nobody goes on with what was sent before
        views = {} if anew else {i: self._sent.seen_by(i, embeddings.values[i]) for i in receivers}
        told = _Told(self, embeddings, batch, arrived, views, head)
        if self.components is not None:
            return Frozen(*self.components.told(told.known, embeddings, batch, head), head, embeddings.passes)
        return Frozen(told.known, told.stood, head, embeddings.passes, told.at_start if self._plain and anew else None)

    def stood(
        self,
        asking: Sequence[int],
        embeddings: Embeddings,
        batch: Batch,
        rest: Callable[[int], Mapping[int, Tensor]],
        head: Tensor | None,
    ) -> StoodBySilo:
        """Where these silos stood at an exchange that told them `rest` of the others, and this head."""
        own: dict[int, list[Tensor]] = {j: [] for j in asking}
        for s in range(len(batch.parts)):
            for j in asking:
                where = embeddings.values[j][s]
                if head is not None:
                    joined = self.task.fusion.join(where, rest(s)[j], self.task.fusion.columns(self.widths, j))
                    mine = embeddings.clients_head if self.task.holds_head(j) else head
                    with torch.no_grad():
                        where = with_own_heads(self.task.apply_head, mine, [joined], batch, j, s)
                own[j] += batch.by_client([j], s, [where])
        return own

    def _note(self, sent: Sent) -> None:
        """One more exchange; who goes on with what was sent before asks for the same samples."""
        if (before := self._sent.exchanges) and before[0].batch is not sent.batch:
            before.clear()
        before.append(sent)

    def _send_head(
        self,
        head: Tensor | None,
        batch: Batch,
        senders: Sequence[int],
        receivers: Sequence[int],
        to: int | None,
        use: int,
    ) -> tuple[Tensor | None, Sequence[int]]:
        """What others get of the head with its holder's embeddings, or got of it before, and at whom it arrives now."""
        if head is None:
            return None, ()
        others = [i for i in receivers if i != self.head_holder]
        if not others:
            return head, ()
        if self.head_holder in senders:
            call = Call("head", batch.round, use)
            return self.arrivals.vector(head_channel(to), head, call, where=self.task.trained_head), others
        return self._sent.head_at(others, batch), ()

    def derivatives(
        self,
        embeddings: Embeddings,
        batch: Batch,
        *,
        around: Embeddings,
        holder: int,
        senders: Sequence[int],
        receivers: Sequence[int],
        about: About,
        use: int,
    ) -> Frozen:
        """The holder gets the others' embeddings, the other receivers the loss's derivatives at theirs."""
        sending = [j for j in senders if j != holder]
        arrived = self._arrive(embeddings, batch, sending, use=use, part=about.asked)
        now = {j: arrived[j] for j in sending}
        # What is sent of a single local step serves that step alone.
        self._note(Sent(batch, now if about.asked is None else {}, holder))
        seen = self._sent.seen_by(holder, around.values[holder])
        now = seen | now
        known: dict[int, list[LossInputs]] = {j: [LossInputs()] * len(batch.parts) for j in receivers}
        answered = range(len(batch.parts)) if about.answered is None else [about.answered]
        for s in answered:
            labels = self.labels(batch, s)
            rest = self.task.fusion.others([seen[j][s] for j in range(len(self.widths))], receivers)
            for j, others in zip(receivers, rest, strict=True):
                if j == holder:
                    y, rest_here = batch.by_client([j, j], s, [labels, others])
                    known[j][s] = LossInputs(y=y, rest=rest_here)
                else:
                    rows = [now[j][s], others, labels]
                    derivative = partial(self._derivative, j)
                    found = with_own_heads(derivative, around.clients_head, rows, batch, holder, s)
                    known[j][s] = LossInputs(derivative=found)
        asking = [j for j in receivers if j != holder]
        each = about.each or len(receivers) == 1
        for name, silos in derivative_channels(asking, each=each).items():
            self._send_back(silos, name, known, batch, holder, answered, use)

        def stood(asking: Sequence[int]) -> StoodBySilo:
            if around.head is not None:  # nobody but its holder can look ahead through a head
                return {j: [] for j in asking}
            return self.stood(asking, embeddings, batch, lambda _: {}, None)

        told: tuple[Known, Stood] = (lambda asking: {j: known[j] for j in asking}), stood
        if self.components is not None:
            told = self.components.told(told[0], embeddings, batch, None)
        return Frozen(*told, around.head, embeddings.passes)

    def _derivative(self, silo: int, head: Tensor | None, own: Tensor, others: Tensor, y: Tensor) -> Tensor:
        columns = self.task.fusion.columns(self.widths, silo)
        return self.task.derivative(own, others, y, columns=columns, head=head)

    def _send_back(
        self,
        silos: Sequence[int],
        name: str,
        known: dict[int, list[LossInputs]],
        batch: Batch,
        holder: int,
        parts: Sequence[int],
        use: int,
    ) -> None:
        """One message's derivatives from the label holder's clients, as silos get to see them in their own orders."""
        rows = [one for s in parts if (one := known[silos[0]][s].derivative) is not None]
        arrived = self.arrivals.embeddings("derivatives", name, rows, batch, holder, use=use, parts=parts)
        for s, values in zip(parts, arrived, strict=True):
            for j, own in zip(silos, batch.by_client(silos, s, [values] * len(silos)), strict=True):
                known[j][s] = LossInputs(derivative=own)

    def _arrive(
        self,
        embeddings: Embeddings,
        batch: Batch,
        senders: Sequence[int],
        *,
        use: int,
        to: int | None = None,
        part: int | None = None,
    ) -> list[tuple[Tensor, ...]]:
        """Every silo's embeddings as the others get to see them, of all parts or one; the rest was seen before."""
        parts = list(range(len(batch.parts))) if part is None else [part]
        for j in senders if "share" in self.arrivals.altered else ():
            name = share_channel(j, to)
            now = list(embeddings.seen.get(j, embeddings.values[j]))
            sent = [embeddings.values[j][s] for s in parts]
            for s, values in zip(
                parts, self.arrivals.embeddings("share", name, sent, batch, j, use=use, parts=parts), strict=True
            ):
                now[s] = values
            embeddings.seen[j] = tuple(now)
        return [embeddings.seen.get(j, values) for j, values in enumerate(embeddings.values)]

    def labels(self, batch: Batch, part: int) -> Tensor:
        labels = self.data.y_train
        return labels if batch.whole else labels.index_select(0, batch.ids(part, labels.device))


@dataclass(frozen=True)
class _Told:
    """What a `share` told the silos, part by part, worked out once somebody asks; without `views` all got the same."""

    by: Sharing
    embeddings: Embeddings
    batch: Batch
    arrived: Sequence[Rows]
    views: Mapping[int, Mapping[int, Rows]]  # by silo, where some did not send
    head: Tensor | None
    _labels: dict[int, Tensor] = field(default_factory=dict)
    _rests: dict[int, Mapping[int, Tensor]] = field(default_factory=dict)
    _derivatives: dict[int, Tensor] = field(default_factory=dict)

    def known(self, asking: Sequence[int]) -> KnownBySilo:
        """The labels and the others' part."""
        own: dict[int, list[LossInputs]] = {j: [] for j in asking}
        for s in range(len(self.batch.parts)):
            ys = self.batch.by_client(asking, s, [self._label(s)] * len(asking))
            others = self.batch.by_client(asking, s, [self._rest(s)[j] for j in asking])
            for j, y, one in zip(asking, ys, others, strict=True):
                own[j].append(LossInputs(y=y, rest=one))
        return own

    def at_start(self, asking: Sequence[int]) -> KnownBySilo:
        """The derivative at the embeddings of the exchange."""
        parts = range(len(self.batch.parts))
        found = [self.batch.by_client(asking, s, [self._derivative(s)] * len(asking)) for s in parts]
        return {j: [LossInputs(derivative=of[i]) for of in found] for i, j in enumerate(asking)}

    def stood(self, asking: Sequence[int]) -> StoodBySilo:
        """Where these silos stood."""
        return self.by.stood(asking, self.embeddings, self.batch, self._rest, self.head)

    def _label(self, part: int) -> Tensor:
        if part not in self._labels:
            self._labels[part] = self.by.labels(self.batch, part)
        return self._labels[part]

    def _rest(self, part: int) -> Mapping[int, Tensor]:
        if part not in self._rests:
            fusion, silos = self.by.task.fusion, range(len(self.arrived))
            rests = {i: fusion.others([view[j][part] for j in silos], [i])[0] for i, view in self.views.items()}
            self._rests[part] = rests or dict(enumerate(fusion.others([one[part] for one in self.arrived], silos)))
        return self._rests[part]

    def _derivative(self, part: int) -> Tensor:
        if part not in self._derivatives:
            scores = self.by.task.fusion.join_all([values[part] for values in self.arrived])
            self._derivatives[part] = self.by.task.loss.derivative(scores, self._label(part))
        return self._derivatives[part]
