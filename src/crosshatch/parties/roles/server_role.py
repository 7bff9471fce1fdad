"""A server's own half: it averages what hubs of groups send, or all clients of the federation itself."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from torch import Tensor

from crosshatch.channels import Channels
from crosshatch.exchanges import ClientWeights, Within
from crosshatch.parties.holdings.agreed import Agreed, Batch, Selection
from crosshatch.parties.holdings.values import Blocks
from crosshatch.parties.names_of_parties import client_name, hub_name
from crosshatch.parties.roles.block_averaging import Keeper, mean_of
from crosshatch.parties.roles.role import Role
from crosshatch.protocol.message_contents import Call
from crosshatch.protocol.names import server_channel
from crosshatch.protocol.refusals import check_server_keeps


@dataclass(frozen=True)
class Below:
    """A group below a server; where the server averages clients itself, it also keeps their blocks for them."""

    number: int
    agreed: Agreed
    channels: Channels
    keepers: tuple[Keeper, ...] = ()  # by silo
    selection: Selection | None = None


@final
@dataclass(kw_only=True)
class ServerRole(Role):
    """The server of one member of a tier; `sizes` is by silo how many numbers of a block travel."""

    level: int
    below: tuple[Below, ...]
    sizes: tuple[int, ...]

    def state(self) -> dict[str, Any]:
        channels = [one.channels.snapshot() for one in self.below]
        keepers = [[keeper.state() for keeper in one.keepers] for one in self.below]
        return {**super().state(), "channels": channels, "keepers": keepers}

    def load(self, state: Mapping[str, Any]) -> None:
        super().load(state)
        for one, channels, keepers in zip(self.below, state["channels"], state["keepers"], strict=True):
            one.channels.restore(channels)
            for keeper, kept in zip(one.keepers, keepers, strict=True):
                keeper.load(kept)

    def _rest(self, blocks: Blocks) -> Blocks:
        return Blocks(every=blocks.every)

    def draw_batch(self, size: int | None, *, round: int, parts: int = 1, first: int = 0) -> Batch:
        """The batches of all groups below it, where it has to know who is at work."""
        drawn = [one.agreed.draw_batch(size, round=round, parts=parts, first=first) for one in self.below]
        return Batch(round, drawn[0].parts, tuple(drawn))

    def select(self, fraction: float, *, round: int) -> Batch:
        """The same of selected clients; it need not know of samples where hubs average."""
        if max(self.agreed.clients) == 1 or fraction >= 1:
            return self.draw_batch(None, round=round)
        if any(one.selection is None for one in self.below):
            return Batch(round, (np.empty(0, dtype=np.int64),))
        selections = [(one.selection, one.agreed.source) for one in self.below if one.selection is not None]
        chosen = [selection.of(source, fraction, round) for selection, source in selections]
        return Batch(round, chosen[0].parts, tuple(chosen))

    def _keeps(self, within: Within) -> bool:
        """Whether it has a part in an exchange of blocks with clients."""
        if within == "silo" or self.level:
            return False
        check_server_keeps(says_so=all(one.keepers for one in self.below))
        return True

    def _broadcast(self, blocks: Blocks, batch: Batch, within: Within, depth: int, call: Call) -> Blocks:  # noqa: ARG002
        if not self._keeps(within):
            return self._rest(blocks)
        told_to: dict[tuple[int, int], Tensor] = {}
        for one, mine in zip(self.below, batch.of_groups, strict=True):
            for j, keeper in enumerate(one.keepers):
                told, contents = keeper.tell(blocks.every[j], keeper.roster.at_work(mine), call)
                told_to[one.number, j] = told
                link = f"{'group' if j in one.agreed.one_party else 'client'}-server down"
                for k, content in contents.items():
                    self.post.send(client_name(one.number, j, k), link, call, *content)
        return Blocks(every=blocks.every, told_to=told_to)

    def _average(
        self, blocks: Blocks, batch: Batch, weights: ClientWeights, within: Within, depth: int, call: Call  # noqa: ARG002
    ) -> Blocks:  # fmt: skip
        if not self._keeps(within):
            return self._rest(blocks)
        means = []
        for j, block in enumerate(blocks.every):
            values, counted, keepers = [], [], [one.keepers[j] for one in self.below]
            for one, keeper, mine in zip(self.below, keepers, batch.of_groups, strict=True):
                at_work, value = keeper.roster.at_work(mine), block
                if j in blocks.moved:
                    given = {k: self.post.recv(client_name(one.number, j, k), call) for k in at_work}
                    value = keeper.average(block, blocks.told_to.get((one.number, j)), given, weights, call)
                values.append(value)
                counted.append(keeper.roster.counted(at_work, weights))
            means.append(mean_of(values, counted))
            self._average_moments(keepers, counted)
        return Blocks(every=tuple(means))

    def _average_moments(self, keepers: Sequence[Keeper], counted: Sequence[int]) -> None:
        """What it keeps of the clients' states is one for all groups."""
        if all(keeper.sent_moments() for keeper in keepers):
            mean = mean_of([keeper.sent_moments()[0] for keeper in keepers], counted)
            for keeper in keepers:
                keeper.moments = keeper.vectors.filled_moments(mean)

    def _average_groups(self, blocks: Blocks, level: int, call: Call) -> Blocks:
        if level != self.level:
            return self._rest(blocks)
        when, down = (call.round, call.use), self.below[0].channels
        samples = [one.agreed.samples for one in self.below]
        # It waits for the last hub: nobody goes on before.
        hubs = [(one.number, j) for one in self.below for j in self.silos]
        given = {
            hub: self.post.recv(hub_name(*hub), call, self.agreed.due("average_groups", self.sizes[hub[1]]))
            for hub in hubs
        }
        for j, size in enumerate(self.sizes):
            arrived, moments = [], []
            for one in self.below:
                content, *along = given[one.number, j]
                draw = one.channels.draw("average_groups", server_channel(j, "up", level), when)
                arrived.append(one.channels.read_vector(draw, content, size, self.agreed.dtype))
                moments += along
            draw = down.draw("average_groups", server_channel(j, "down", level), when)
            content = down.write_vector(draw, mean_of(arrived, samples))
            along = [mean_of(moments, samples)] if moments else []
            for one in self.below:
                self.post.send(hub_name(one.number, j), "group-server down", call, content, *along)
        return self._rest(blocks)

    def _decide(self, value: float, by: int, call: Call) -> float:  # noqa: ARG002
        first, *rest = [hub_name(one.number, by) for one in self.below]
        (said,) = self.post.recv(first, call)
        for hub in rest if self.level == 0 else ():
            self.post.send(hub, "group-server down", call, said)
        return float(said)
