"""What an exchange tells the silos of each other: embeddings, or the loss's derivatives where one holds the labels.

The simulator has all labels in one place; who may use them is decided by which of the two is
sent, in `exchange` of `federation.py`. Parties are given no others' labels at all: `parties/vertical_parties.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

from torch import Tensor

from crosshatch.protocol.message_contents import About, Call
from crosshatch.protocol.names import derivative_channels, head_channel, share_channel
from crosshatch.protocol.what_is_known import Samples, Stamp, check_seen
from crosshatch.simulator.passes import Passes
from crosshatch.simulator.vertical.batch import Batch
from crosshatch.simulator.vertical.embedding import Embeddings, Outputs
from crosshatch.simulator.vertical.on_the_way import OnTheWay
from crosshatch.simulator.vertical.own_heads import with_own_heads
from crosshatch.task.task import Task


@dataclass(frozen=True)
class Sent:
    """A silo's embeddings as they arrived at others, and by which `embed` they were made."""

    made: Stamp
    rows: Outputs


@dataclass(frozen=True)
class Frozen:
    """What silos' clients know of the others for the samples of a batch, part by part in the batch's order.

    All tables are by silo, with those that an exchange has reached. `own` are a silo's embeddings at the exchange,
    `seen` what it saw last of each other one, `heads` the head that its clients work with, (h,) or at the head's holder
    one for each client at work. Where another silo holds the labels there are `derivatives` in place of what was seen
    (None: of a part that was not asked about), or the `gradients` (p,) that a linear block makes of them.
    """

    samples: Samples
    own: Mapping[int, Outputs]
    seen: Mapping[int, Mapping[int, Sent]]
    heads: Mapping[int, Tensor]
    derivatives: Mapping[int, tuple[Tensor | None, ...]] = field(default_factory=dict)
    gradients: Mapping[int, Tensor] = field(default_factory=dict)


Rows = dict[int, Tensor]
"""By part rows (n, e) in the batch's order."""
Heads = Mapping[int, Tensor]
"""By silo the head that its clients work with."""
Arrived = dict[int, Rows]
"""By sender and part the rows (n, e) that arrived of its embeddings."""


NextCall = Callable[[str, int], Call]
"""The next use of an exchange in a round."""


class Asked(NamedTuple):
    """Who holds the labels, who gets to know something, and by which use of which exchanges."""

    holder: int
    receivers: Sequence[int]
    down: Call
    next_call: NextCall


@dataclass(frozen=True)
class Sharing:
    """The numbers of an exchange; its messages are those of `accounting.Accounts`."""

    task: Task
    passes: Passes
    on_the_way: OnTheWay
    widths: tuple[int, ...]
    listener: Any = None  # somebody like `simulator.listening.Listening`, who is told what arrived

    def share(
        self, embeddings: Embeddings, around: Embeddings, batch: Batch, known: Frozen, senders: Sequence[int],
        receivers: Sequence[int], *, to: int | None, use: int,
    ) -> Frozen:  # fmt: skip
        """Each receiver gets the senders' embeddings in `around`; its own are the new ones."""
        arrived, now = self._arrive(around, batch, senders, use=use, to=to)
        views: dict[int, Mapping[int, Sent]] = {}  # who has seen the same before sees the same now
        seen, heads = dict(known.seen), dict(known.heads)
        for i in receivers:
            before = known.seen.get(i, _NOTHING)
            if id(before) not in views:
                views[id(before)] = {**before, **now}
            seen[i] = views[id(before)]
            if len(seen[i]) < len(self.widths):
                check_seen(seen[i], [j for j in range(len(self.widths)) if j != i])
        holder = self.task.fusion.holder
        if holder is not None and embeddings.clients_head is not None:
            others = [i for i in receivers if i != holder]
            if holder in senders and others:
                head = around.head
                assert head is not None
                if "head" in self.on_the_way.channels.codecs:
                    call = Call("head", batch.round, use)
                    head = self.on_the_way.vector(head_channel(to), head, call, where=self.task.trained_head)
                heads |= dict.fromkeys(others, head)
            if holder in receivers:
                heads[holder] = embeddings.clients_head
        if self.listener is not None:
            self.listener.share(batch, use, arrived, receivers, heads)
        own = {**known.own, **{i: embeddings.values[i] for i in receivers}}
        return Frozen(batch.parts, own, seen, heads)

    def derivatives(
        self, embeddings: Embeddings, around: Embeddings, batch: Batch, known: Frozen, senders: Sequence[int],
        receivers: Sequence[int], *, holder: int, about: About, use: int,
    ) -> Frozen:  # fmt: skip
        """The holder gets the senders' embeddings, the other receivers the loss's derivatives at theirs."""
        arrived, now = self._arrive(embeddings, batch, senders, use=use, part=about.sent_part)
        view = known.seen.get(holder, _NOTHING)
        if about.sent_part is None:  # what is sent of a single local step serves that step alone
            view = {**view, **now}
        silos = range(len(self.widths))
        check_seen(view, [j for j in silos if j != holder])
        asking = [j for j in receivers if j != holder]
        answered = range(len(batch.parts)) if about.answered_part is None else [about.answered_part]
        rows: dict[int, list[Tensor]] = {j: [] for j in asking}
        channels = derivative_channels(asking, each=about.one_per_silo or len(receivers) == 1) if asking else {}
        for s in answered if asking else ():
            _, labels = self.passes.samples(batch, (), s)
            every = [around.values[j][s] if j == holder else view[j].rows[s] for j in silos]
            computed = [silos[0] for silos in channels.values()]
            for j, others in zip(computed, self.task.fusion.others(every, computed), strict=True):
                at = [arrived[j][s] if j in arrived else view[j].rows[s], others, labels]
                compute = partial(self._derivative, j)
                rows[j].append(with_own_heads(compute, around.clients_head, at, batch, holder, s))
        came: dict[tuple[int, ...], Rows] = {}
        for name, served in channels.items():
            sent: Sequence[Tensor] = rows[served[0]]
            if "derivatives" in self.on_the_way.channels.codecs:
                sent = self.on_the_way.rows("derivatives", name, sent, batch, holder, use=use, parts=answered)
            came[tuple(served)] = dict(zip(answered, sent, strict=True))
        if self.listener is not None:
            self.listener.derivatives(batch, use, arrived, holder, came)
        parts = range(len(batch.parts))
        told = {j: tuple(by_part.get(s) for s in parts) for served, by_part in came.items() for j in served}
        own = {**known.own, **{i: embeddings.values[i] for i in (*receivers, holder)}}  # it is always told
        heads = dict(known.heads)
        if embeddings.clients_head is not None:
            heads[holder] = embeddings.clients_head
        return Frozen(batch.parts, own, {**known.seen, holder: view}, heads, {**known.derivatives, **told})

    def _derivative(self, silo: int, head: Tensor | None, own: Tensor, others: Tensor, y: Tensor) -> Tensor:
        columns = self.task.fusion.columns(self.widths, silo)
        return self.task.derivative(own, others, y, columns=columns, head=head)

    def _arrive(
        self, embeddings: Embeddings, batch: Batch, senders: Sequence[int], *, use: int, to: int | None = None,
        part: int | None = None,
    ) -> tuple[Arrived, dict[int, Sent]]:  # fmt: skip
        """The senders' embeddings as others get to see them, of all parts or one; and as they are kept by others."""
        parts = list(range(len(batch.parts))) if part is None else [part]
        arrived, kept = Arrived(), dict[int, Sent]()
        for j in senders:
            rows: Sequence[Tensor] = [embeddings.values[j][s] for s in parts]
            if "share" in self.on_the_way.channels.codecs:
                name = share_channel(j, to)
                rows = self.on_the_way.rows("share", name, rows, batch, j, use=use, parts=parts)
            arrived[j], kept[j] = dict(zip(parts, rows, strict=True)), Sent(embeddings.made[j], tuple(rows))
        return arrived, kept


_NOTHING: Mapping[int, Sent] = {}
