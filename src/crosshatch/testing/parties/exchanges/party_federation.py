"""The exchanges of a vertical federation, party after party.

The text of a round is run once. Its values are kept by party, and a party's methods are given that party's own entry
and what arrived for it, nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from crosshatch.exchanges import ClientWeights, Within
from crosshatch.protocol.message_contents import About, Call
from crosshatch.protocol.names import head_channel, share_channel
from crosshatch.protocol.refusals import check_seen
from crosshatch.testing.parties.agreed import Agreed, Batch
from crosshatch.testing.parties.client import Client
from crosshatch.testing.parties.exchanges.held import HeldLabels
from crosshatch.testing.parties.exchanges.legs import Parties
from crosshatch.testing.parties.exchanges.party_branches import Branches
from crosshatch.testing.parties.hub import Hub
from crosshatch.testing.parties.model import KnownOfOthers, Look
from crosshatch.testing.parties.post import Uses
from crosshatch.testing.parties.values_by_party import Blocks, Embeddings, Frozen, Who, know, with_own


@dataclass
class PartyFederation:
    """Clients and hubs of one federation; see `crosshatch.exchanges.Federation` for what each method means."""

    parties: Parties
    uses: Uses = field(default_factory=Uses)

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
        return self.agreed.label_holder is not None

    def draw_batch(self, size: int | None, *, round: int, parts: int = 1, first: int = 0) -> Batch:
        """Everybody draws the same."""
        self.parties.forget()
        return self.agreed.draw_batch(size, round=round, parts=parts, first=first)

    def select(self, fraction: float, *, round: int) -> Batch:
        """Everybody selects the same."""
        self.parties.forget()
        return self.agreed.select(fraction, round=round)

    def average_groups(self, blocks: Blocks, *, round: int, level: int = 0) -> Blocks:  # noqa: ARG002
        """A single group has nobody to average with."""
        return blocks

    def broadcast(self, blocks: Blocks, batch: Batch, *, within: Within = "silo", depth: int = 0) -> Blocks:
        """Each hub (or the server, or branches) sends to its clients at work."""
        call = self.uses.call("broadcast", batch.round)
        if self.agreed.branches:
            return self.branches.broadcast(blocks, batch, depth, call)
        held: dict[Who, Tensor] = {}
        for hub in self.parties.hubs:
            j, clients = hub.silo, self.parties.clients[hub.silo]
            link = self.parties.link(j, "down", within)
            for k, content in hub.broadcast(blocks.hubs[j], self.agreed.at_work(j, batch), call).items():
                arrived, *state = self.parties.post.carry(link, call, content, *self._moments_of(hub, j))
                if state and not self.parties.is_alone(j):
                    clients[k].moments = hub.model.filled_moments(state[0])
                if j not in self.agreed.one_party:
                    held[j, k] = clients[k].take_block(arrived, call)
                elif (j, clients[0].number) not in held:  # one message for each of its pairs: the party reads one
                    held[j, clients[0].number] = clients[0].take_block(arrived, call)
            if j in self.agreed.one_party:
                held |= {(j, client.number): held[j, clients[0].number] for client in clients}
        return Blocks(blocks.hubs, held, held)

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
            after[j] = self.parties.hubs[j].average(blocks.hubs[j], given, weights, call)
            if moments:
                self.parties.hubs[j].average_moments(moments, weights)
        return Blocks(tuple(after))

    def block_at(self, blocks: Blocks, client: Client) -> Tensor:
        """The block a client holds: the one it got or made of it; where hub and client are one, the hub's."""
        me = (client.silo, client.number)
        if me in blocks.clients:
            return blocks.clients[me]
        assert client.silo in self.agreed.one_party, "a client works with a block nobody sent it"
        return blocks.hubs[client.silo]

    def embed(
        self, blocks: Blocks, batch: Batch, *, only: int | None = None, known: Embeddings | None = None
    ) -> Embeddings:
        """Each client embeds its own samples."""
        values = {} if known is None else dict(known.values)
        heads = {} if known is None else dict(known.heads)
        for client in self.parties.at_work(batch, None if only is None else [only]):
            block, me = self.block_at(blocks, client), (client.silo, client.number)
            values[me] = client.embed(block, batch)
            if client.model.holds_head:
                heads[me] = client.head_of(block, batch)
        holder = self.agreed.head_holder
        head = None if holder is None else self.parties.hubs[holder].model.sent_head(blocks.hubs[holder])
        if holder is not None and self.parties.clients[holder][0].anchors is not None:
            head = heads[holder, 0]  # hub and client are one party
        return Embeddings(values, head, heads)

    def share(
        self, embeddings: Embeddings, batch: Batch, *, senders: Sequence[int] | None = None, to: int | None = None
    ) -> Frozen:
        """From client to hub to other hubs to their clients."""
        call, agreed = self.uses.call("share", batch.round), self.agreed
        receivers = list(self.silos) if to is None else [to]
        arrived: dict[int, dict[int, Tensor]] = {i: {} for i in receivers}  # at each receiving hub, by sender
        heads: dict[int, Tensor] = {}
        for j in self.silos if len(self.silos) > 1 else ():
            if j == to or (senders is not None and j not in senders):
                continue
            name, width = share_channel(j, to), agreed.widths[j]
            contents = [
                self.parties.collect(
                    "share", name, j, self.parties.rows_of(embeddings, j, batch), width, batch, None, call
                )
            ]
            if j == agreed.head_holder:
                assert embeddings.head is not None
                contents.append(self.parties.hubs[j].give_head(embeddings.head, head_channel(to), call))
            for i in receivers:
                if i != j:
                    rows, *head = self.parties.post.carry(self.parties.between_hubs("across"), call, *contents)
                    arrived[i][j] = self.parties.hubs[i].read("share", name, j, rows, width, batch, None, call)
                    if head:
                        heads[i] = head[0]
        answers = [self._answer(i, arrived[i], heads.get(i), batch, head_channel(to), call) for i in receivers]
        frozen = Frozen(
            {who: known for one in answers for who, known in one.known.items()},
            {who: head for one in answers for who, head in one.heads.items()},
        )
        return with_own(frozen, embeddings)

    def _answer(
        self, silo: int, arrived: Mapping[int, Tensor], head: Tensor | None, batch: Batch, name: str, call: Call
    ) -> Frozen:
        """A hub sends its clients what is new of the other silos for their samples, and the head."""
        hub, others = self.parties.hubs[silo], self.agreed.others(silo)
        hub.seen |= arrived
        check_seen(hub.seen, others)
        columns = hub.put_together(arrived, batch)
        clients = self.agreed.at_work(silo, batch)
        heads = {} if head is None else hub.pass_head(head, name, clients, call)
        known, got = {}, {}
        for k in clients:
            client, along = self.parties.clients[silo][k], [heads[k]] if k in heads else []
            if arrived or not others:
                rows = torch.cat(list(columns.values()), dim=1)[self.agreed.rows(silo, k, batch)]
                link = self.parties.link(silo, "down") if arrived else None
                mine, *head_here = self.parties.post.carry(link, call, rows, *along)
                pieces = torch.split(mine, [one.shape[1] for one in columns.values()], dim=1)
                client.others |= dict(zip(columns, pieces, strict=True))
                if head_here:
                    client.head = client.take_head(head_here[0], name, call)
            known[silo, k] = know(client, batch, client.rest())
            if client.head is not None:
                got[silo, k] = client.head
        return Frozen(known, got)

    def share_derivatives(
        self,
        embeddings: Embeddings,
        batch: Batch,
        *,
        around: Embeddings | None = None,
        step: int = 0,
        senders: Sequence[int] | None = None,
        to: int | None = None,
    ) -> Frozen:
        """Embeddings go to the label's holder, derivatives come back."""
        about = About.of(len(batch.parts), step, inner=around is not None, head=self.agreed.head_holder is not None)
        up, down = (self.uses.call(exchange, batch.round) for exchange in ("share", "derivatives"))
        exchange = HeldLabels(self.parties, batch, embeddings if around is None else around, about, up, down)
        heard = exchange.ask(embeddings, self.silos if senders is None else senders)
        return with_own(exchange.answer(list(self.silos) if to is None else [to], heard), embeddings)

    def descend(
        self,
        blocks: Blocks,
        batch: Batch,
        frozen: Frozen,
        *,
        steps: int,
        step_size: float,
        first: int = 0,
        proximal: float = 0.0,
        only: int | None = None,
        anticipation: float = 1.0,
        continued: bool = False,
        earlier: Sequence[tuple[Batch, Frozen]] = (),
    ) -> Blocks:
        """Each client, on its own samples; where hub and client are one party, the hub has the new block at once."""
        silos = list(self.silos) if only is None else [only]
        moved, hubs = dict(blocks.clients), list(blocks.hubs)
        for client in self.parties.at_work(batch, silos):
            me = (client.silo, client.number)
            moved[me] = client.descend(
                self.block_at(blocks, client),
                [(then, known.known.get(me, self._nothing(then))) for then, known in [(batch, frozen), *earlier]],
                frozen.heads.get(me), steps=steps, step_size=step_size, first=first, proximal=proximal,
                look=Look(anticipation, continued),
            )  # fmt: skip
            if client.silo in self.agreed.one_party and not self.agreed.hubs_together:
                hubs[client.silo] = moved[me]
        after = replace(blocks, hubs=tuple(hubs), clients=moved, moved=blocks.moved | set(silos))
        return replace(after, clients={}, starts={}, moved=frozenset()) if self._nobody_to_average_with else after

    def _nothing(self, batch: Batch) -> tuple[KnownOfOthers, ...]:
        """What a client knows that has no samples of a batch."""
        return (KnownOfOthers(),) * len(batch.parts)

    @property
    def _nobody_to_average_with(self) -> bool:
        """Whether every silo is one party, so that there is nobody to average with."""
        return len(self.agreed.one_party) == len(self.silos) and not self.agreed.hubs_together
