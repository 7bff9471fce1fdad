"""A client's own half of every exchange."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
import torch
from torch import Tensor

from crosshatch.channels import Channels
from crosshatch.exchanges import ClientWeights, LocalSteps, Within
from crosshatch.local.moments import Moments
from crosshatch.parties.holdings.agreed import Batch
from crosshatch.parties.holdings.client import Client
from crosshatch.parties.holdings.model import KnownOfOthers
from crosshatch.parties.holdings.values import Blocks, Embeddings, Frozen
from crosshatch.parties.line import Name
from crosshatch.parties.names_of_parties import branch_name, hub_name, server_name
from crosshatch.parties.post import CLIENT_UP
from crosshatch.parties.roles.role import HeldUse, Role, SharedUse
from crosshatch.parties.roles.tree import node_above
from crosshatch.protocol.message_contents import Call
from crosshatch.protocol.names import block_channel, head_channel, share_channel
from crosshatch.protocol.what_is_known import check_sent


@final
@dataclass(kw_only=True)
class ClientRole(Role):
    """What a client tells its hub and hears from it; `channels` are its own ends of them."""

    silo: int
    client: Client
    channels: Channels

    def __post_init__(self) -> None:
        deepest, agreed = len(self.agreed.branches), self.agreed
        node = node_above(agreed, self.silo, self.client.number, deepest)
        self._hub = hub_name(self.group, self.silo)
        self._above = branch_name(self.group, self.silo, 0 if self._is_inside else deepest, node)
        self._alone = agreed.is_alone(self.silo)
        self._up = None if self._is_inside else CLIENT_UP

    def begin_round(self, round: int) -> None:
        """Its moments begin anew, unless they are to be carried over."""
        super().begin_round(round)
        self.client.begin_round()

    def state(self) -> dict[str, Any]:
        moments = None if self.client.moments is None else self.client.moments.flat
        return {**super().state(), "channels": self.channels.snapshot(), "moments": moments}

    def load(self, state: Mapping[str, Any]) -> None:
        super().load(state)
        self.channels.restore(state["channels"])
        flat = state["moments"]
        self.client.moments = None if flat is None else Moments.of(self.client.model.vectors.optimiser, flat)

    # -- blocks

    def _check_sent(self, blocks: Blocks, batch: Batch, silos: Collection[int]) -> None:
        if self.silo in silos and blocks.mine is None and self.client.at_work(batch):
            check_sent(self.silo, np.array([self.client.number]), None)

    def _rest(self, blocks: Blocks) -> Blocks:
        return Blocks(blocks.mine) if self._alone else Blocks()

    def _broadcast(self, blocks: Blocks, batch: Batch, within: Within, depth: int, call: Call) -> Blocks:
        sender = server_name(0, 0) if within == "federation" else self._above
        if self._is_inside:
            return self._broadcast_inside(batch, within, sender, call)
        if not self.client.at_work(batch):
            return self._rest(blocks)
        content, *moments = self.post.recv(sender, call, *self._block_due)
        self._take_moments(moments)
        number = node_above(self.agreed, self.silo, self.client.number, depth)
        draw = self.channels.draw("broadcast", block_channel(self.silo, depth), (call.round, call.use), number)
        vectors = self.client.model.vectors
        mine = vectors.filled(self.channels.read_vector(draw, content, vectors.size, self.agreed.dtype))
        return Blocks(mine, mine)

    def _broadcast_inside(self, batch: Batch, within: Within, sender: Name, call: Call) -> Blocks:
        """One message for each of the party's pairs arrives, its hub reads one of them for all."""
        if within == "federation" and self.client.at_work(batch):
            content, *moments = self.post.recv(sender, call)
            self._take_moments(moments)
            self.post.send(self._hub, None, call, content)
        mine, *moments = self.post.recv(self._hub, call)
        self._take_moments(moments)
        return Blocks(mine, mine)

    @property
    def _block_due(self) -> list[tuple[int, ...] | None]:
        """The shapes of a block that is told, and of the moments that come with it."""
        moments = [self._sent_moments().shape] if self.agreed.averages_moments and self.client.moments else []
        return [self.agreed.due("broadcast", self.client.model.vectors.size), *moments]

    def _take_moments(self, arrived: Sequence[Tensor]) -> None:
        if arrived:
            self.client.moments = self.client.model.vectors.filled_moments(arrived[0])

    def _sent_moments(self) -> Tensor:
        assert self.client.moments is not None
        return self.client.model.vectors.sent_moments(self.client.moments)

    def _average(
        self, blocks: Blocks, batch: Batch, weights: ClientWeights, within: Within, depth: int, call: Call  # noqa: ARG002
    ) -> Blocks:  # fmt: skip
        together = within == "federation"
        if self.silo in blocks.moved and self.client.at_work(batch):
            assert blocks.mine is not None
            start = blocks.mine if blocks.latest is None else blocks.latest
            moments = [self._sent_moments()] if self.agreed.averages_moments and not self._alone else []
            to = server_name(0, 0) if together else self._above
            link = f"{'group' if self._is_inside else 'client'}-server up" if together else self._up
            self.post.send(to, link, call, self._give_block(blocks.mine, start, call), *moments)
        return Blocks() if together else self._rest(blocks)

    def _give_block(self, block: Tensor, start: Tensor, call: Call) -> Tensor:
        """Its block as it is, or encoded how far it moved from the one it got."""
        vectors = self.client.model.vectors
        if "average" not in self.channels.codecs:
            return vectors.sent(block)
        draw = self.channels.draw("average", str(self.silo), (call.round, call.use), self.client.number)
        return self.channels.write_vector(draw, vectors.sent(block) - vectors.sent(start))

    def _average_groups(self, blocks: Blocks, level: int, call: Call) -> Blocks:  # noqa: ARG002
        if not self._alone:
            return Blocks()
        if self.agreed.averages_moments:  # they are the client's, where hub and client are one party
            self.post.send(self._hub, None, call, self._sent_moments())
        mine, *moments = self.post.recv(self._hub, call)
        self._take_moments(moments)
        return Blocks(mine)

    # -- local work

    def _embed(self, blocks: Blocks, batch: Batch, start: Embeddings, *, takes_part: bool) -> Embeddings:
        if not takes_part or not self.client.at_work(batch):
            return start
        assert blocks.mine is not None
        head = self.client.head_of(blocks.mine, batch) if self.client.model.holds_head else None
        if self.client.anchors is not None:  # the class mean is the client's: the hub, the same party, sends it on
            assert head is not None
            self.post.send(self._hub, None, self.uses.call("class mean", self.round), head)
        return replace(start, values=self.client.embed(blocks.mine, batch), head=head)

    def _steps(self, blocks: Blocks, exchanged: Sequence[tuple[Batch, Frozen]], local: LocalSteps) -> Blocks:
        batch, frozen = exchanged[0]
        if not self.client.at_work(batch):
            return blocks
        known = [(then, got.known or (KnownOfOthers(),) * len(then.parts)) for then, got in exchanged]
        assert blocks.mine is not None
        mine = self.client.descend(blocks.mine, known, frozen.head, local)
        if self._alone:
            self.post.send(self._hub, None, self.uses.call("own block", self.round), mine)
        return replace(blocks, mine=mine)

    # -- labels shared

    def _share(self, after: Frozen, use: SharedUse) -> Frozen:
        client, batch = self.client, use.batch
        if not client.at_work(batch):
            return after
        if self.silo in use.senders:
            self._give_rows(
                "share", share_channel(self.silo, use.to), torch.cat(use.sent.values), batch, None, use.call
            )
        if self.silo not in use.receivers:
            return after
        new, head = [j for j in use.senders if j != self.silo], after.head
        others = dict(after.others) if len(self.silos) > 1 else self._nobody(batch)
        if new:
            headed = self.agreed.head_holder is not None
            width = sum(self.agreed.widths[j] for j in new) if headed else self.agreed.widths[new[0]]
            mine, *along = self.post.recv(self._hub, use.call, (sum(client.counts(batch)), width))
            others |= self._by_silo(mine, new, summed=self.agreed.head_holder is None)
            if along:
                head = self._take_head(along[0], head_channel(use.to), use.call)
        known = self._with_own(client.know(batch, others), use.embeddings, head)
        return replace(after, known=known, head=head, others=others)

    def _give_rows(self, exchange: str, name: str, rows: Tensor, batch: Batch, part: int | None, call: Call) -> None:
        """Rows (n, e) about its samples of the batch (or of one part), for its hub."""
        content = self._encode_rows(exchange, name, rows, batch, part, call)
        self.post.send(self._hub, self._up, call, content)

    def _encode_rows(
        self, exchange: str, name: str, rows: Tensor, batch: Batch, part: int | None, call: Call
    ) -> Tensor:
        draw = self.channels.draw(exchange, name, (call.round, call.use), self.client.number)
        return self.channels.write(draw, rows, self.client.ids_of(batch, part), self.agreed.samples)

    def _nobody(self, batch: Batch) -> dict[int | None, Tensor]:
        """What the only silo knows of others: they add up to zeros, or there is nothing beside its own for a head."""
        rows, headed = sum(self.client.counts(batch)), self.agreed.head_holder is not None
        width = 0 if headed else self.agreed.widths[self.silo]
        return {self.silo if headed else None: torch.zeros(rows, width, dtype=self.agreed.dtype)}

    def _by_silo(self, mine: Tensor, silos: Sequence[int], *, summed: bool) -> dict[int | None, Tensor]:
        if summed:
            return {None: mine}
        return dict(zip(silos, torch.split(mine, [self.agreed.widths[j] for j in silos], dim=1), strict=True))

    def _take_head(self, content: Tensor, name: str, call: Call) -> Tensor:
        draw, size = self.channels.draw("head", name, (call.round, call.use)), self.client.model.vectors.head_size
        return self.client.model.filled_head(self.channels.read_vector(draw, content, size, self.agreed.dtype))

    def _with_own(
        self, known: Sequence[KnownOfOthers], embeddings: Embeddings, head: Tensor | None
    ) -> tuple[KnownOfOthers, ...]:
        """It also remembers its own embeddings of that moment, and the head it had."""
        had = head if embeddings.head is None else embeddings.head
        return tuple(replace(one, own=own, head=had) for one, own in zip(known, embeddings.values, strict=True))

    # -- labels held

    def _ask_holder(self, after: Frozen, use: HeldUse) -> Frozen:
        client, batch, asked, answered = self.client, use.batch, use.about.sent_part, use.about.answered_part
        if self.silo in use.senders and client.at_work(batch, asked):
            rows = torch.cat(use.embeddings.values) if asked is None else use.embeddings.values[asked]
            self._give_rows("share", share_channel(self.silo), rows, batch, asked, use.up)
        if self.silo not in use.asking or not client.at_work(batch):
            return after
        known = [KnownOfOthers()] * len(batch.parts)
        if client.at_work(batch, answered):
            due = (len(client.ids_of(batch, answered)), self.agreed.width("derivatives", self.silo))
            (mine,) = self.post.recv(self._hub, use.down, due)
            pieces = dict(enumerate(torch.split(mine, client.counts(batch)))) if answered is None else {answered: mine}
            for part, piece in pieces.items():
                known[part] = KnownOfOthers(rest=piece) if self.agreed.transfers else KnownOfOthers(derivative=piece)
        return replace(after, known=self._with_own(known, use.embeddings, None))

    def _hold(self, after: Frozen, use: HeldUse) -> Frozen:
        client, batch, asked = self.client, use.batch, use.about.sent_part
        others, heard = dict(after.others), dict[int | None, Tensor]()
        if use.senders and client.at_work(batch, asked):
            summed = self.agreed.head_holder is None and asked is None
            widths = [self.agreed.widths[j] for j in use.senders]
            due = (len(client.ids_of(batch, asked)), widths[0] if summed else sum(widths))
            (mine,) = self.post.recv(self._hub, use.up, due)
            (others if asked is None else heard).update(self._by_silo(mine, use.senders, summed=summed))
        if use.asking and client.at_work(batch, use.about.answered_part):
            contents = []
            for name, silos in use.channels.items():
                rows = self._derivative(use, silos[0], others, heard)
                contents.append(self._encode_rows("derivatives", name, rows, batch, use.about.answered_part, use.drawn))
            self.post.send(self._hub, self._up, use.down, *contents)
        if not client.at_work(batch):
            return after
        known = self._with_own(client.know(batch, others), use.embeddings, None)
        return replace(after, known=known, others=others)

    def _derivative(
        self, use: HeldUse, silo: int, others: Mapping[int | None, Tensor], heard: Mapping[int | None, Tensor]
    ) -> Tensor:
        """The derivative for a silo, for its rows of the parts answered."""
        client, batch, part = self.client, use.batch, use.about.answered_part
        own, head = use.around.values, use.around.head
        y = client.labels(batch, part)
        if self.agreed.transfers:
            assert head is not None
            return client.components(torch.cat(own), head, y)
        start = 0 if part is None else sum(client.counts(batch)[:part])
        of_part = {j: rows[start : start + len(y)] for j, rows in others.items()}
        mine = torch.cat(own) if part is None else own[part]
        return client.derivatives(mine, of_part, head, y, silo, heard.get(silo))

    # -- decisions

    def _decide(self, value: float, by: int, call: Call) -> float:  # noqa: ARG002
        (heard,) = self.post.recv(self._above, call)
        return float(heard)
