"""The exchanges of a vertical federation, party after party.

The text of a round is run once. Its values are kept by party, and a party's methods are given that party's own entry
and what arrived for it, nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from torch import Tensor

from crosshatch.exchanges import ClientWeights, Federation, LocalSteps, Number, Within
from crosshatch.protocol.message_contents import About
from crosshatch.protocol.refusals import check_continued
from crosshatch.protocol.what_is_known import (
    check_decision,
    check_only,
    check_samples,
    check_sent,
    check_told,
    find_parts,
    find_route,
)
from crosshatch.testing.parties.agreed import Agreed, Batch
from crosshatch.testing.parties.client import Client
from crosshatch.testing.parties.exchanges.held import HeldLabels
from crosshatch.testing.parties.exchanges.legs import Parties
from crosshatch.testing.parties.exchanges.party_branches import Branches
from crosshatch.testing.parties.exchanges.shared_labels import SharedLabels
from crosshatch.testing.parties.hub import Hub
from crosshatch.testing.parties.model import KnownOfOthers
from crosshatch.testing.parties.post import Uses
from crosshatch.testing.parties.values_by_party import Blocks, Embeddings, Frozen, Node, Who, with_own


@dataclass
class PartyFederation(Federation[Blocks, Batch, Embeddings, Frozen]):
    """Clients and hubs of one federation; see `crosshatch.exchanges.Federation` for what each method means."""

    parties: Parties
    uses: Uses = field(default_factory=Uses)
    round: int = 0

    def __post_init__(self) -> None:
        """Branches below the hubs, where there are any."""
        self.branches = Branches(self.parties)

    @property
    def agreed(self) -> Agreed:
        """What everybody knows."""
        return self.parties.agreed

    @property
    def silos(self) -> Sequence[int]:
        """Numbers of the silos."""
        return self.agreed.silos

    @property
    def labels_held(self) -> bool:
        """Whether one silo alone knows the labels."""
        return self.agreed.label_holder is not None and len(self.silos) > 1

    def begin_round(self, round: int) -> None:
        """No exchange was used yet."""
        self.round = round
        self.uses.begin_round()
        self.parties.begin_round()

    def draw_batch(self, size: int | None, *, round: int, parts: int = 1, first: int = 0) -> Batch:
        """Everybody draws the same."""
        return self.agreed.draw_batch(size, round=round, parts=parts, first=first)

    def select(self, fraction: float, *, round: int) -> Batch:
        """Everybody selects the same."""
        return self.agreed.select(fraction, round=round)

    def average_groups(self, blocks: Blocks, *, round: int, level: int = 0) -> Blocks:  # noqa: ARG002
        """A single group has nobody to average with."""
        return blocks

    def broadcast(self, blocks: Blocks, batch: Batch, *, within: Within = "silo", depth: int = 0) -> Blocks:
        """Each hub (or the server, or branches) sends to its clients at work."""
        call = self.uses.call("broadcast", batch.round)
        if self.agreed.branches:
            return self.branches.broadcast(blocks, batch, depth, call)
        held, told = dict[Who, Tensor](), dict[Node, Tensor]()
        for hub in self.parties.hubs:
            j, clients = hub.silo, self.parties.clients[hub.silo]
            link = self.parties.link(j, "down", within)
            told[j, 0, 0], contents = hub.broadcast(blocks.hubs[j], self.agreed.at_work(j, batch), call)
            for k, content in contents.items():
                arrived, *state = self.parties.post.carry(link, call, content, *self._moments_of(hub, j))
                if state and not self.parties.is_alone(j):
                    clients[k].moments = hub.model.filled_moments(state[0])
                if j not in self.agreed.one_party:
                    held[j, k] = clients[k].take_block(arrived, call)
                elif (j, clients[0].number) not in held:  # one message for each of its pairs: the party reads one
                    held[j, clients[0].number] = clients[0].take_block(arrived, call)
            if j in self.agreed.one_party:
                held |= {(j, client.number): held[j, clients[0].number] for client in clients}
        return Blocks(blocks.hubs, held, held, told=told)

    def _moments_of(self, holder: Client | Hub, silo: int) -> list[Tensor]:
        """What travels with a block where moments are averaged."""
        if not self.agreed.averages_moments or holder.moments is None or self.parties.is_alone(silo):
            return []
        return [holder.model.sent_moments(holder.moments)]

    def average(
        self,
        blocks: Blocks,
        batch: Batch,
        *,
        weights: ClientWeights = "equal",
        within: Within = "silo",
        depth: int = 0,
    ) -> Blocks:
        """Clients at work send to their hub (or the server, or branches)."""
        if not blocks.moved:
            return replace(blocks, clients={}, starts={})
        self._check_sent(blocks, batch, blocks.moved)
        call = self.uses.call("average", batch.round)
        if self.agreed.branches:
            return self.branches.average(blocks, batch, weights, depth, call)
        after = list(blocks.hubs)
        for j in sorted(blocks.moved):
            given, moments = {}, {}
            for client in self.parties.at_work(batch, [j]):
                me = (j, client.number)
                content = client.give_block(self.block_at(blocks, client), blocks.starts.get(me, blocks.hubs[j]), call)
                link = self.parties.link(j, "up", within)
                along = self._moments_of(client, j)
                given[client.number], *state = self.parties.post.carry(link, call, content, *along)
                if state:
                    moments[client.number] = state[0]
            after[j] = self.parties.hubs[j].average(blocks.hubs[j], blocks.told.get((j, 0, 0)), given, weights, call)
            if moments:
                self.parties.hubs[j].average_moments(moments, weights)
        return Blocks(tuple(after))

    def block_at(self, blocks: Blocks, client: Client) -> Tensor:
        """The block a client holds: the one it got or made of it; where hub and client are one, the hub's."""
        me = (client.silo, client.number)
        if me in blocks.clients:
            return blocks.clients[me]
        assert client.silo in self.agreed.one_party, "checked before"
        return blocks.hubs[client.silo]

    def _check_sent(self, blocks: Blocks, batch: Batch, silos: Iterable[int]) -> None:
        """The clients at work have the blocks that they are to work with."""
        for j in silos:
            if j not in self.agreed.one_party:
                sent_to = np.array([k for i, k in blocks.clients if i == j], dtype=np.int64)
                check_sent(j, np.array(self.agreed.at_work(j, batch)), sent_to)

    def embed(
        self, blocks: Blocks, batch: Batch, *, only: int | None = None, known: Embeddings | None = None
    ) -> Embeddings:
        """Each client embeds its own samples."""
        check_only(only, None if known is None else known.samples, batch.parts, len(self.silos))
        silos = list(self.silos) if only is None else [only]
        self._check_sent(blocks, batch, silos)
        call = self.uses.call("embed", self.round)
        values = {} if known is None else dict(known.values)
        heads = {} if known is None else dict(known.heads)
        made = [(call.round, call.use)] * len(self.silos) if known is None or only is None else list(known.made)
        for silo in silos:
            made[silo] = (call.round, call.use)
        for client in self.parties.at_work(batch, silos):
            block, me = self.block_at(blocks, client), (client.silo, client.number)
            values[me] = client.embed(block, batch)
            if client.model.holds_head:
                heads[me] = client.head_of(block, batch)
        holder = self.agreed.head_holder
        head = None if holder is None else self.parties.hubs[holder].model.sent_head(blocks.hubs[holder])
        if holder is not None and self.parties.clients[holder][0].anchors is not None:
            head = heads[holder, 0]  # hub and client are one party
        return Embeddings(batch.parts, tuple(made), values, head, heads)

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
        """Everybody tells everybody, or the label's holder, who answers."""
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
            shared = SharedLabels(self.parties, batch, to, self.uses.call("share", batch.round))
            return shared.tell(embeddings, sent, before, sending, receivers)
        about = About.of(len(batch.parts), step, inner=around is not None, head=self.agreed.head_holder is not None)
        up, down = (self.uses.call(exchange, batch.round) for exchange in ("share", "derivatives"))
        held = HeldLabels(self.parties, batch, around or embeddings, before, about, up, down)
        heard = held.ask(embeddings, sending)
        told = with_own(held.answer(receivers, heard), embeddings, {})
        return Frozen(
            batch.parts, {**before.known, **told}, before.heads, {**before.seen, holder: held.seen},
            {**before.made, holder: held.made}, held.others,
        )  # fmt: skip

    def decide(self, value: Number, *, round: int, by: int = 0) -> Number:
        """A hub tells the others, and every hub its clients; the last one's word is as good as any."""
        check_decision(value, by, len(self.silos))
        call, said = self.uses.call("decide", round), torch.tensor([value], dtype=torch.float64)
        for j in self.silos:
            heard = said
            if j != by:
                (heard,) = self.parties.post.carry(self.parties.between_hubs("across"), call, said)
            for _ in self.parties.clients[j]:
                (last,) = self.parties.post.carry(self.parties.link(j, "down"), call, heard)
        return type(value)(last.item())

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
        """Each client, on its own samples; where hub and client are one party, the hub has the new block at once."""
        silos, exchanged = list(self.silos) if only is None else [only], [(batch, frozen), *earlier]
        for one, known in exchanged:
            check_samples("descend", known.samples, one.parts)
        self._check_sent(blocks, batch, silos)
        self._check_told(silos, exchanged, local)
        moved, hubs = dict(blocks.clients), list(blocks.hubs)
        for client in self.parties.at_work(batch, silos):
            me = (client.silo, client.number)
            known_here = [(then, known.known.get(me, _nothing(then))) for then, known in exchanged]
            moved[me] = client.descend(self.block_at(blocks, client), known_here, frozen.heads.get(me), local)
            if client.silo in self.agreed.one_party and not self.agreed.hubs_together:
                hubs[client.silo] = moved[me]
        after = replace(blocks, hubs=tuple(hubs), clients=moved, moved=blocks.moved | set(silos))
        return replace(after, clients={}, starts={}, moved=frozenset()) if self._nobody_to_average_with else after

    def _check_told(self, silos: Sequence[int], exchanged: Sequence[tuple[Batch, Frozen]], local: LocalSteps) -> None:
        """Every silo knows something of the others for the samples of the steps."""
        for number, s in find_parts(local, [len(one.parts) for one, _ in exchanged])[1]:
            for j in silos:
                told = [parts[s] for (i, _), parts in exchanged[number][1].known.items() if i == j]
                check_told(j, told=any(one.rest is not None or one.derivative is not None for one in told))
                if local.continued and any(one.derivative is not None for one in told):
                    check_continued(head=self.agreed.head_holder is not None)

    @property
    def _nobody_to_average_with(self) -> bool:
        """Whether every silo is one party, so that there is nobody to average with."""
        return len(self.agreed.one_party) == len(self.silos) and not self.agreed.hubs_together


def _nothing(batch: Batch) -> tuple[KnownOfOthers, ...]:
    """What a client knows that has no samples of a batch."""
    return (KnownOfOthers(),) * len(batch.parts)
