"""A hub's own half of every exchange; blocks are averaged in `block_averaging.py`, with branches in `tree.py`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, final

import torch
from torch import Tensor

from crosshatch.codecs import Draw
from crosshatch.errors import ConfigError
from crosshatch.exchanges import ClientWeights, LocalSteps, Within
from crosshatch.parties.holdings.agreed import Batch, Roster
from crosshatch.parties.holdings.values import Blocks, Embeddings, Frozen
from crosshatch.parties.line import Name
from crosshatch.parties.names_of_parties import client_name, hub_name
from crosshatch.parties.roles.block_averaging import Keeper
from crosshatch.parties.roles.passing_on import gather, pass_head, put_together, read, told_to_holders
from crosshatch.parties.roles.role import HeldUse, Role, SharedUse
from crosshatch.parties.roles.tree import Node
from crosshatch.protocol.message_contents import Call
from crosshatch.protocol.names import head_channel, server_channel, share_channel


@dataclass(frozen=True)
class Above:
    """The server of a tier that a hub's group is below: its name, and the seed of the draws of what it sends."""

    name: Name
    seed: int
    is_first: bool  # whether the group is the first of those below that server


@final
@dataclass(kw_only=True)
class HubRole(Role):
    """It keeps its silo's block, passes rows on, adds up and answers; `embed` and `descend` are its clients'.

    `servers` are those above it by level. With `anchored` its client, the same party, has a class mean.
    """

    silo: int
    keeper: Keeper
    node: Node | None = None  # with branches below it
    servers: tuple[Above, ...] = ()
    anchored: bool = False

    def __post_init__(self) -> None:
        self._alone = self.agreed.is_alone(self.silo)
        self._down = None if self._is_inside else "client-hub down"

    @property
    def _roster(self) -> Roster:
        return self.keeper.roster

    def state(self) -> dict[str, Any]:
        return {**super().state(), **self.keeper.state()}

    def load(self, state: Mapping[str, Any]) -> None:
        super().load(state)
        self.keeper.load(state)

    def _client(self, number: int) -> Name:
        return client_name(self.group, self.silo, number)

    def _peer(self, silo: int) -> Name:
        return hub_name(self.group, silo)

    def _across(self, way: str) -> str | None:
        return None if self.agreed.hubs_together else f"hub-hub {way}"

    # -- blocks

    def _kept(self, blocks: Blocks) -> Tensor:
        if blocks.mine is None:
            raise ConfigError(
                f"the hub of silo number {self.silo} has no block, since within='federation' the server keeps it: "
                "broadcast and average within the federation alone, or within silos alone"
            )
        return blocks.mine

    def _broadcast(self, blocks: Blocks, batch: Batch, within: Within, depth: int, call: Call) -> Blocks:
        if self._is_inside:
            return self._broadcast_inside(blocks, batch, within, call)
        if within == "federation":
            return Blocks()  # its clients have theirs from the server
        mine = self._kept(blocks)
        if self.node is not None:
            return self.node.broadcast(blocks, batch, depth, call)
        told, contents = self.keeper.tell(mine, self._roster.at_work(batch), call)
        for k, content in contents.items():
            self.post.send(self._client(k), self._down, call, *content)
        return Blocks(mine, told)

    def _broadcast_inside(self, blocks: Blocks, batch: Batch, within: Within, call: Call) -> Blocks:
        """Its clients are the same party, so all of them have the block; of the server's messages it reads one."""
        at_work, keeper, mine = self._roster.at_work(batch), self.keeper, blocks.mine
        along: list[Tensor] = []
        if within == "federation":
            content, *_ = [self.post.recv(self._client(k), call)[0] for k in at_work]
            draw = keeper.channels.draw("broadcast", str(self.silo), (call.round, call.use))
            arrived = keeper.channels.read_vector(draw, content, keeper.vectors.size, self.agreed.dtype)
            mine = told = keeper.vectors.filled(arrived)
        else:
            mine = self._kept(blocks)
            told, _ = keeper.tell(mine, at_work, call)
            along = keeper.sent_moments()
        for k in range(self._roster.clients):
            self.post.send(self._client(k), None, call, told, *along)
        return Blocks(mine, told)

    def _average(
        self, blocks: Blocks, batch: Batch, weights: ClientWeights, within: Within, depth: int, call: Call
    ) -> Blocks:
        if within == "federation":
            return Blocks()  # the server has the average
        if self.silo not in blocks.moved:
            return self._rest(blocks)
        mine = self._kept(blocks)
        if self.node is not None:
            return self.node.average(blocks, batch, weights, depth, call)
        due = self.keeper.due("average")
        given = {k: self.post.recv(self._client(k), call, *due) for k in self._roster.at_work(batch)}
        return Blocks(self.keeper.average(mine, blocks.latest, given, weights, call))

    def _average_groups(self, blocks: Blocks, level: int, call: Call) -> Blocks:
        server, keeper, channels = self.servers[level], self.keeper, self.keeper.channels
        vectors, first = keeper.vectors, self._client(0)
        up, down = (f"average_groups:{server_channel(self.silo, way, level)}" for way in ("up", "down"))
        where = (call.round, call.use, 0)
        content = channels.write_vector(Draw(self.agreed.seed, up, where), vectors.sent(self._kept(blocks)))
        in_client = self._alone and self.agreed.averages_moments
        moments = self.post.recv(first, call) if in_client else keeper.sent_moments()
        self.post.send(server.name, "group-server up", call, content, *moments)
        due = [self.agreed.due("average_groups", vectors.size), *(tuple(one.shape) for one in moments)]
        got, *moments = self.post.recv(server.name, call, *due)
        draw = Draw(server.seed, down, where)
        mine = vectors.filled(channels.read_vector(draw, got, vectors.size, self.agreed.dtype))
        if self._alone:
            self.post.send(first, None, call, mine, *moments)
        elif moments:
            keeper.moments = vectors.filled_moments(moments[0])
        return Blocks(mine)

    # -- its clients' local work

    def _embed(self, blocks: Blocks, batch: Batch, start: Embeddings, *, takes_part: bool) -> Embeddings:  # noqa: ARG002
        if self.silo != self.agreed.head_holder:
            return start
        if not self.anchored:
            return replace(start, head=self.keeper.vectors.sent_head(self._kept(blocks)))
        if not takes_part:
            return start
        (mean,) = self.post.recv(self._client(0), self.uses.call("class mean", self.round))
        return replace(start, head=mean)

    def _steps(self, blocks: Blocks, exchanged: Sequence[tuple[Batch, Frozen]], local: LocalSteps) -> Blocks:  # noqa: ARG002
        if not self._alone:
            return blocks
        (mine,) = self.post.recv(self._client(0), self.uses.call("own block", self.round))
        return replace(blocks, mine=mine)

    # -- labels shared

    def _share(self, after: Frozen, use: SharedUse) -> Frozen:
        batch, call = use.batch, use.call
        if self.silo in use.senders:
            contents = self._gather("share", self.silo, batch, None, call)
            if self.silo == self.agreed.head_holder:
                assert use.sent.head is not None
                draw = self.keeper.channels.draw("head", head_channel(use.to), (call.round, call.use))
                contents.append(self.keeper.channels.write_vector(draw, use.sent.head))
            for i in use.receivers:
                if i != self.silo:
                    self.post.send(self._peer(i), self._across("across"), call, *contents)
        if self.silo not in use.receivers:
            return after
        arrived, head = dict[int, Tensor](), None
        for j in use.senders:
            if j != self.silo:
                contents = list(self.post.recv(self._peer(j), call, self._due("share", j, batch, None)))
                if j == self.agreed.head_holder:
                    head = contents.pop()
                arrived[j] = read(self.keeper, "share", share_channel(j, use.to), j, contents, batch, None, call)
        seen = {**after.seen, **arrived}
        if arrived:
            clients = self._roster.at_work(batch)
            heads = {} if head is None else pass_head(self.keeper, head, head_channel(use.to), clients, call)
            columns = put_together(self.agreed, arrived, seen)
            for k in clients:
                along = [heads[k]] if k in heads else []
                rows = columns[self._roster.rows(k, batch)]
                self.post.send(self._client(k), self._down, call, rows, *along)
        return replace(after, seen=seen)

    def _gather(self, exchange: str, silo: int, batch: Batch, part: int | None, call: Call) -> list[Tensor]:
        """What its clients sent about their rows, to be passed on."""
        given = {k: one for k, (one,) in self._heard(exchange, [silo], batch, part, call).items()}
        return gather(self.keeper, exchange, silo, given, batch, part)

    def _heard(
        self, exchange: str, silos: Sequence[int], batch: Batch, part: int | None, call: Call
    ) -> dict[int, tuple[Tensor, ...]]:
        """By client what it sent of its rows, a tensor about the embeddings of each of these silos."""
        found, widths = {}, [self.agreed.width(exchange, j) for j in silos]
        for k in self._roster.at_work(batch, part):
            rows = len(self._roster.rows(k, batch, part))
            due = [self.agreed.due(exchange, rows, width) for width in widths]
            found[k] = self.post.recv(self._client(k), call, *due)
        return found

    def _due(self, exchange: str, silo: int, batch: Batch, part: int | None) -> tuple[int, ...] | None:
        """The shape of what another hub passes on about a silo's embeddings."""
        return self.agreed.due(exchange, len(batch.ids(part)), self.agreed.width(exchange, silo))

    # -- labels held

    def _ask_holder(self, after: Frozen, use: HeldUse) -> Frozen:
        batch, holder, part = use.batch, self._peer(use.holder), use.about.answered_part
        if self.silo in use.senders:
            contents = self._gather("share", self.silo, batch, use.about.sent_part, use.up)
            self.post.send(holder, self._across("up"), use.up, *contents)
        if self.silo in use.asking:
            contents = list(self.post.recv(holder, use.down, self._due("derivatives", self.silo, batch, part)))
            name = next(name for name, silos in use.channels.items() if self.silo in silos)
            rows = read(self.keeper, "derivatives", name, self.silo, contents, batch, part, use.drawn)
            for k in self._roster.at_work(batch, part):
                self.post.send(self._client(k), self._down, use.down, rows[self._roster.rows(k, batch, part)])
        return after

    def _hold(self, after: Frozen, use: HeldUse) -> Frozen:
        batch, asked, answered, seen = use.batch, use.about.sent_part, use.about.answered_part, dict(after.seen)
        new: dict[int, Tensor] = {}
        for j in use.senders:
            passed_on = self.post.recv(self._peer(j), use.up, self._due("share", j, batch, asked))
            new[j] = read(self.keeper, "share", share_channel(j), j, passed_on, batch, asked, use.up)
        if asked is None:
            seen |= new
        if use.senders:
            columns = torch.cat(told_to_holders(self.agreed, new, seen, batch, asked), dim=1)
            for k in self._roster.at_work(batch, asked):
                self.post.send(self._client(k), self._down, use.up, columns[self._roster.rows(k, batch, asked)])
        if use.asking:
            first = [silos[0] for silos in use.channels.values()]
            given = self._heard("derivatives", first, batch, answered, use.down)
            for n, silos in enumerate(use.channels.values()):
                mine = {k: one[n] for k, one in given.items()}
                contents = gather(self.keeper, "derivatives", silos[0], mine, batch, answered)
                for j in silos:
                    self.post.send(self._peer(j), self._across("down"), use.down, *contents)
        return replace(after, seen=seen)

    # -- decisions

    def _decide(self, value: float, by: int, call: Call) -> float:
        said = torch.tensor([value], dtype=torch.float64)
        if self.silo != by:
            (said,) = self.post.recv(self._peer(by), call)
        elif self.group:
            (said,) = self.post.recv(self.servers[0].name, call)
        if self.silo == by:
            for server in self.servers:
                if server.is_first:
                    self.post.send(server.name, "group-server up", call, said)
            for j in self.agreed.others(self.silo):
                self.post.send(self._peer(j), self._across("across"), call, said)
        if self.node is not None:
            self.node.pass_down(range(self._roster.clients), call, said)
        else:
            for k in range(self._roster.clients):
                self.post.send(self._client(k), self._down, call, said)
        return float(said)
