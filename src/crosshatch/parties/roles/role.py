"""What every party does alike: it draws, counts the uses of exchanges, finds who takes part, and refuses what is wrong.

A role's federation answers the text for one party. What all parties know they work out here, each for itself; what a
party does in an exchange is in the methods of its role, and an onlooker does nothing.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from crosshatch.exchanges import ClientWeights, Federation, LocalSteps, Number, Within
from crosshatch.parties.holdings.agreed import Agreed, Batch, Selection
from crosshatch.parties.holdings.values import Blocks, Embeddings, Frozen
from crosshatch.parties.party import AnyRole
from crosshatch.protocol.message_contents import About, Call
from crosshatch.protocol.names import derivative_channels
from crosshatch.protocol.refusals import check_continued, check_selects
from crosshatch.protocol.what_is_known import (
    check_decision,
    check_only,
    check_samples,
    check_seen,
    check_told,
    find_parts,
    find_route,
)


@dataclass(frozen=True)
class SharedUse:
    """Labels shared: every sender's embeddings `sent` go to all receivers, or to silo `to` alone."""

    embeddings: Embeddings
    sent: Embeddings
    batch: Batch
    senders: Sequence[int]
    receivers: Sequence[int]
    to: int | None
    call: Call


@dataclass(frozen=True)
class HeldUse:
    """Labels held by one silo: it gets embeddings, and answers the receivers, each around the others' in `around`."""

    embeddings: Embeddings
    around: Embeddings
    batch: Batch
    holder: int
    senders: Sequence[int]
    receivers: Sequence[int]
    about: About
    up: Call
    down: Call

    @property
    def asking(self) -> list[int]:
        return [j for j in self.receivers if j != self.holder]

    @property
    def channels(self) -> dict[str, Sequence[int]]:
        """The holder's answers by channel, with the silos each of them serves."""
        asking = self.asking
        return derivative_channels(asking, each=self.about.one_per_silo or len(self.receivers) == 1) if asking else {}

    @property
    def drawn(self) -> Call:
        """Names a codec's draws: both ways are counted by how often the way up was used."""
        return Call("derivatives", self.down.round, self.up.use)


@dataclass(kw_only=True)
class Role(AnyRole, Federation[Blocks, Batch, Embeddings, Frozen]):
    """A party's federation; see `crosshatch.exchanges.Federation` for what each method means to a text."""

    agreed: Agreed
    silo: int | None = None
    group: int = 0
    groups: int = 1
    selection: Selection | None = None

    @property
    def _is_inside(self) -> bool:
        """Whether its silo is one party, hub and clients."""
        return self.silo in self.agreed.one_party

    @property
    def silos(self) -> Sequence[int]:
        return self.agreed.silos

    @property
    def labels_held(self) -> bool:
        """Whether one silo alone of several knows the labels."""
        return self.agreed.label_holder is not None and len(self.silos) > 1

    def draw_batch(self, size: int | None, *, round: int, parts: int = 1, first: int = 0) -> Batch:
        """Everybody draws the same."""
        return self.agreed.draw_batch(size, round=round, parts=parts, first=first)

    def select(self, fraction: float, *, round: int) -> Batch:
        """Everybody selects the same clients, and finds the samples it knows of that they hold."""
        if max(self.agreed.clients) == 1 or fraction >= 1:
            return self.draw_batch(None, round=round)
        check_selects(fraction, says_so=self.selection is not None)
        assert self.selection is not None
        return self.selection.of(self.agreed.source, fraction, round)

    def broadcast(self, blocks: Blocks, batch: Batch, *, within: Within = "silo", depth: int = 0) -> Blocks:
        """Who sends blocks, and who gets one."""
        return self._broadcast(blocks, batch, within, depth, self.uses.call("broadcast", batch.round))

    def average(
        self,
        blocks: Blocks,
        batch: Batch,
        *,
        weights: ClientWeights = "equal",
        within: Within = "silo",
        depth: int = 0,
    ) -> Blocks:
        """Who gives its block, and who averages; nobody does where no client has moved."""
        if not blocks.moved:
            return self._rest(blocks)
        self._check_sent(blocks, batch, blocks.moved)
        call = self.uses.call("average", batch.round)
        return replace(self._average(blocks, batch, weights, within, depth, call), moved=frozenset())

    def average_groups(self, blocks: Blocks, *, round: int, level: int = 0) -> Blocks:
        """A single group has nobody to average with."""
        if self.groups == 1:
            return blocks
        return self._average_groups(blocks, level, self.uses.call("average_groups", round))

    def embed(
        self, blocks: Blocks, batch: Batch, *, only: int | None = None, known: Embeddings | None = None
    ) -> Embeddings:
        """Everybody knows whose embeddings are new."""
        if only is not None:
            check_only(only, None if known is None else known.samples, batch.parts, len(self.silos))
        silos = list(self.silos) if only is None else [only]
        self._check_sent(blocks, batch, silos)
        call = self.uses.call("embed", self.round)
        stamp = (call.round, call.use)
        before = [stamp] * len(self.silos) if known is None or only is None else known.made
        made = tuple(stamp if j in silos else one for j, one in enumerate(before))
        start = Embeddings(batch.parts, made) if known is None else replace(known, made=made)
        return self._embed(blocks, batch, start, takes_part=self.silo in silos)

    def exchange(
        self,
        embeddings: Embeddings,
        batch: Batch,
        *,
        known: Frozen | None = None,
        around: Embeddings | None = None,
        step: int = 0,
        senders: Sequence[int] | None = None,
        to: int | None = None,
    ) -> Frozen:
        """Everybody knows who sends, who has then seen what, and who is told."""
        for one in (embeddings, around, known):
            if one is not None:
                check_samples("exchange", one.samples, batch.parts)
        before = known or Frozen(batch.parts)
        holder = self.agreed.label_holder if self.labels_held else None
        sent = embeddings if around is None or holder is not None else around
        sending, receivers = find_route(sent.made, before.made, holder, senders, to)
        if holder is None:
            if around is not None and step > 0:
                return before
            return self._exchange_shared(before, SharedUse(
                embeddings, sent, batch, sending if len(self.silos) > 1 else [], receivers, to,
                self.uses.call("share", batch.round),
            ))  # fmt: skip
        about = About.of(len(batch.parts), step, inner=around is not None, head=self.agreed.head_holder is not None)
        up, down = (self.uses.call(exchange, batch.round) for exchange in ("share", "derivatives"))
        use = HeldUse(embeddings, around or embeddings, batch, holder, sending, receivers, about, up, down)
        return self._exchange_held(before, use)

    def _exchange_shared(self, before: Frozen, use: SharedUse) -> Frozen:
        made, told = dict(before.made), dict(before.told_parts)
        for i in use.receivers:
            made[i] = {**made.get(i, {}), **{j: use.sent.made[j] for j in use.senders if j != i}}
            told[i] = frozenset(range(len(use.batch.parts)))
            check_seen(made[i], self.agreed.others(i))
        return self._share(replace(before, made=made, told_parts=told), use)

    def _exchange_held(self, before: Frozen, use: HeldUse) -> Frozen:
        made, told, holder = dict(before.made), dict(before.told_parts), use.holder
        if use.about.sent_part is None:
            made[holder] = {**made.get(holder, {}), **{j: use.embeddings.made[j] for j in use.senders}}
        check_seen(made.get(holder, {}), self.agreed.others(holder))
        every = frozenset(range(len(use.batch.parts)))
        told |= dict.fromkeys(
            use.asking, every if use.about.answered_part is None else frozenset([use.about.answered_part])
        )
        told[holder] = every  # it is always told
        after = replace(before, made=made, told_parts=told)
        return self._hold(after, use) if self.silo == holder else self._ask_holder(after, use)

    def decide(self, value: Number, *, round: int, by: int = 0) -> Number:
        """One hub's word goes to everybody; whatever others say."""
        check_decision(value, by, len(self.silos))
        heard = self._decide(float(value), by, self.uses.call("decide", round))
        return type(value)(heard)

    def _descend(
        self,
        blocks: Blocks,
        batch: Batch,
        frozen: Frozen,
        local: LocalSteps,
        *,
        only: int | None,
        earlier: Sequence[tuple[Batch, Frozen]],
    ) -> Blocks:
        silos, exchanged = list(self.silos) if only is None else [only], [(batch, frozen), *earlier]
        for one, known in exchanged:
            check_samples("descend", known.samples, one.parts)
        self._check_sent(blocks, batch, silos)
        self._check_told(silos, exchanged, local)
        after = self._steps(blocks, exchanged, local) if self.silo in silos else blocks
        return after if self.agreed.all_alone else replace(after, moved=blocks.moved | set(silos))

    def _check_told(self, silos: Sequence[int], exchanged: Sequence[tuple[Batch, Frozen]], local: LocalSteps) -> None:
        """Every silo knows something of the others for the samples of the steps."""
        by_derivative = self.labels_held and not self.agreed.transfers
        for number, s in find_parts(local, [len(one.parts) for one, _ in exchanged])[1]:
            for j in silos:
                check_told(j, told=s in exchanged[number][1].told_parts.get(j, ()))
                if local.continued and by_derivative and j != self.agreed.label_holder:
                    check_continued(head=self.agreed.head_holder is not None)

    # What a role does; an onlooker hands on what it has.

    def _check_sent(self, blocks: Blocks, batch: Batch, silos: Collection[int]) -> None:
        """Clients work with blocks that somebody sent them."""

    def _rest(self, blocks: Blocks) -> Blocks:
        """What it goes on with when the clients' blocks are used up."""
        return Blocks(blocks.mine, every=blocks.every)

    def _broadcast(self, blocks: Blocks, batch: Batch, within: Within, depth: int, call: Call) -> Blocks:  # noqa: ARG002
        return self._rest(blocks)

    def _average(
        self, blocks: Blocks, batch: Batch, weights: ClientWeights, within: Within, depth: int, call: Call  # noqa: ARG002
    ) -> Blocks:  # fmt: skip
        return self._rest(blocks)

    def _average_groups(self, blocks: Blocks, level: int, call: Call) -> Blocks:  # noqa: ARG002
        return self._rest(blocks)

    def _embed(self, blocks: Blocks, batch: Batch, start: Embeddings, *, takes_part: bool) -> Embeddings:  # noqa: ARG002
        return start

    def _share(self, after: Frozen, use: SharedUse) -> Frozen:  # noqa: ARG002
        return after

    def _ask_holder(self, after: Frozen, use: HeldUse) -> Frozen:  # noqa: ARG002
        return after

    def _hold(self, after: Frozen, use: HeldUse) -> Frozen:  # noqa: ARG002
        return after

    def _decide(self, value: float, by: int, call: Call) -> float:  # noqa: ARG002
        return value

    def _steps(self, blocks: Blocks, exchanged: Sequence[tuple[Batch, Frozen]], local: LocalSteps) -> Blocks:  # noqa: ARG002
        return blocks
