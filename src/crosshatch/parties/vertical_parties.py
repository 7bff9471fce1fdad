"""Hubs, clients, branches and servers of a vertical federation, or of each group, put together.

Here held labels are kept back: a client is given copies of its own rows, and of labels only where its silo has them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from crosshatch.channels import Channels
from crosshatch.codecs import AnyCodec, ErrorFeedback
from crosshatch.data.federated import FederatedData
from crosshatch.errors import ConfigError
from crosshatch.exchanges import batch_source, declared, with_division
from crosshatch.exchanges.where_it_runs import check_runs_on, one_party_silos_in
from crosshatch.local.anchors import Anchors
from crosshatch.local.read_chain import draws_random_numbers
from crosshatch.parties.holdings.agreed import Agreed, Beforehand, Roster, Selection
from crosshatch.parties.holdings.client import Client
from crosshatch.parties.holdings.model import Model
from crosshatch.parties.holdings.steps import PlainSteps, SolvedSteps, Steps, Way
from crosshatch.parties.holdings.values import Blocks
from crosshatch.parties.holdings.vectors import Vectors
from crosshatch.parties.line import Name
from crosshatch.parties.names_of_parties import branch_name, client_name, hub_name, server_name
from crosshatch.parties.party import Party
from crosshatch.parties.post import Post
from crosshatch.parties.roles.block_averaging import Keeper
from crosshatch.parties.roles.client_role import ClientRole
from crosshatch.parties.roles.hub_role import Above, HubRole
from crosshatch.parties.roles.server_role import Below, ServerRole
from crosshatch.parties.roles.tree import BranchRole, Node, node_above
from crosshatch.protocol.batches import Ids
from crosshatch.protocol.class_means import find_anchors
from crosshatch.protocol.members import Member, members_of, pair, tiers_of
from crosshatch.protocol.names import CODED
from crosshatch.task.probe import ROWS
from crosshatch.task.task import Task


def vertical_parties(
    data: FederatedData, task: Task, algorithm: Any, *, seed: int, codecs: Mapping[str, AnyCodec], way: Way,
    only: Collection[Name] | None = None, beforehand: Beforehand | None = None,
) -> dict[Name, Party]:  # fmt: skip
    """The parties by name (or `only` these): group after group, silo after silo, and the servers last."""
    text = with_division(algorithm)
    widths = task.check_fit([silo.train[:ROWS] for silo in data.silos], data.classes)
    if beforehand is None:
        if declared(text).central:
            name = type(text).__name__
            raise ConfigError(f"algorithm {name} does not run party by party: use one with clients and hubs")
        check_runs_on(data, task, text, codecs)
        pairs = zip(task.blocks, data.silos, strict=True)
        draws = any(draws_random_numbers(block, silo.train[:2]) for block, silo in pairs)
        beforehand = Beforehand(widths, draws)
    members = members_of(data, seed=seed)
    groups = [Group.of(n, member, task, text, beforehand, codecs, way) for n, member in enumerate(members)]
    tiers = tiers_of(len(groups), data.group_shape)
    found: dict[Name, Party] = {}
    for group in groups:
        above = _servers_above(group.number, groups, tiers) if len(groups) > 1 else ()
        found |= group.parties(text, len(groups), above, only)
    levels = range(len(tiers)) if len(groups) > 1 else range(1 if text.topology.above else 0)
    for level in levels:
        for member in np.unique(tiers[level]).tolist():
            below = [group for group in groups if tiers[level][group.number] == member]
            if only is None or server_name(level, member) in only:
                found[server_name(level, member)] = _server(level, member, below, text, len(groups))
    return found


_CODED_AT_CLIENTS = set(CODED) - {"average_groups"}


@dataclass(frozen=True)
class Group:
    """A vertical federation before it is cut apart: nothing of this is kept by a party as it is."""

    number: int
    data: FederatedData
    task: Task
    agreed: Agreed
    beforehand: Beforehand
    rosters: tuple[Roster, ...]
    vectors: tuple[Vectors, ...]
    selects: bool
    server_keeps: bool
    way: Way

    @classmethod
    def of(
        cls, number: int, member: Member, task: Task, text: Any, beforehand: Beforehand,
        codecs: Mapping[str, AnyCodec], way: Way,
    ) -> Group:  # fmt: skip
        known, one_party = declared(text), one_party_silos_in(member, task, text)
        data = pair(member.data) if known.pairs else member.data
        agreed = Agreed(
            samples=len(data.y_train),
            clients=tuple(silo.clients for silo in data.silos),
            widths=beforehand.widths,
            one_party=one_party,
            label_holder=None if data.label_silo is None else data.label_holder,
            head_holder=task.head_holder,
            source=batch_source(text, seed=member.batch_seed, group=number),
            codecs=codecs,
            seed=member.codec_seed,
            dtype=data.silos[0].train.dtype,
            in_order_of_ids=beforehand.draws,
            branches=data.branches,
            averages_moments=task.optimiser is not None and task.optimiser.state == "averaged",
            hubs_together=known.pairs,
            transfers=task.transfer is not None,
        )
        rosters = tuple(Roster(silo.owners, silo.clients) for silo in data.silos)
        vectors = tuple(Vectors.of(task, j) for j in agreed.silos)
        selects = known.fraction is not None and known.fraction < 1
        keeps = known.within == "federation"
        return cls(number, data, task, agreed, beforehand, rosters, vectors, selects, keeps, way)

    def selection(self, ids: Ids | None = None) -> Selection | None:
        """What somebody who knows of these samples (None: all) has to know to select."""
        if not self.selects:
            return None
        most = max(self.rosters, key=lambda roster: roster.clients)
        known = np.arange(self.agreed.samples) if ids is None else ids
        return Selection(most.clients, known, most.owners[known])

    def keeper(self, silo: int) -> Keeper:
        vectors = self.vectors[silo]
        return Keeper(self.agreed, silo, self.rosters[silo], vectors, self.agreed.channels(silo), vectors.no_moments())

    def house(self, silo: int, number: int | None = None) -> Name:
        """The party that a role belongs to: a hub and a client that are one, and hubs that are."""
        if number is None or silo in self.agreed.one_party:
            return hub_name(self.number, 0 if self.agreed.hubs_together else silo)
        return client_name(self.number, silo, number)

    def keeps_nothing(self, silo: int, text: Any) -> bool:
        """Whether a silo's clients hold nothing between rounds: after a crash they can begin wherever their hub is."""
        agreed, known, optimiser = self.agreed, declared(text), self.task.optimiser
        return (
            (known.returns_blocks and known.within == "silo" and known.window == 1)
            and not (silo in agreed.one_party or agreed.branches)
            and (optimiser is None or optimiser.state == "reset")
            and not any(isinstance(agreed.codecs.get(way), ErrorFeedback) for way in _CODED_AT_CLIENTS)
        )

    def parties(
        self, text: Any, groups: int, servers: tuple[Above, ...], only: Collection[Name] | None
    ) -> dict[Name, Party]:
        """Silo after silo: its hub, its branches, its clients."""
        found: list[Party] = []
        anchors = find_anchors(self.data, self.task)
        for j in self.agreed.silos:
            holds = self.task.holds_head(j)
            if only is None or hub_name(self.number, j) in only:
                found.append(self._hub(j, text, groups, servers, anchored=anchors is not None and holds))
            found += [party for party in self._branches(j, text, groups) if only is None or party.name in only]
            found += [
                self._client(j, k, text, groups, anchors if holds else None)
                for k in range(self.agreed.clients[j])
                if only is None or client_name(self.number, j, k) in only
            ]
        return {party.name: party for party in found}

    def _hub(self, silo: int, text: Any, groups: int, servers: tuple[Above, ...], *, anchored: bool) -> Party:
        names = (client_name(self.number, silo, k) for k in range(self.agreed.clients[silo]))
        followers = frozenset(names if self.keeps_nothing(silo, text) else ())
        post, keeper = Post(self.agreed.dtype, followers=followers), self.keeper(silo)
        role = HubRole(
            agreed=self.agreed, post=post, silo=silo, group=self.number, groups=groups, selection=self.selection(),
            keeper=keeper, servers=servers, anchored=anchored, node=self._node(0, 0, post, keeper),
            beforehand=self.beforehand,
        )  # fmt: skip
        return Party(hub_name(self.number, silo), role, text, self.house(silo), Blocks(self.vectors[silo].first))

    def _node(self, level: int, number: int, post: Post, keeper: Keeper) -> Node | None:
        if not self.agreed.branches or keeper.silo in self.agreed.one_party:
            return None
        return Node(post, self.number, level, number, keeper)

    def _branches(self, silo: int, text: Any, groups: int) -> list[Party]:
        found = []
        for level in range(1, len(self.agreed.branches) + 1):
            numbers = {node_above(self.agreed, silo, k, level) for k in range(self.agreed.clients[silo])}
            for number in sorted(numbers):  # those with clients
                post = Post(self.agreed.dtype)
                node = self._node(level, number, post, self.keeper(silo))
                if node is not None:
                    role = BranchRole(
                        agreed=self.agreed, post=post, silo=silo, group=self.number, groups=groups,
                        selection=self.selection(), node=node, beforehand=self.beforehand,
                    )  # fmt: skip
                    name = branch_name(self.number, silo, level, number)
                    found.append(Party(name, role, text, name, Blocks()))
        return found

    def _client(self, silo: int, number: int, text: Any, groups: int, anchors: Anchors | None) -> Party:
        """With copies of its own rows, and of its labels where it has them."""
        agreed, data = self.agreed, self.data
        ids = np.flatnonzero(self.rosters[silo].owners == number)
        knows = agreed.label_holder in (None, silo)  # held labels are kept back from all other silos
        y = data.y_train[ids].clone() if knows else None
        model = Model.of(self.task, silo, agreed.widths, knows=knows)
        steps: Steps = PlainSteps(model, silo, number, agreed.in_order_of_ids)
        if self.way == "solved":
            steps = SolvedSteps.of(self.task, silo, number, agreed.widths, knows=knows)
        x = data.silos[silo].train[ids].clone()
        client = Client(agreed, silo, number, ids, x, y, model, steps, anchors=anchors)
        hub = hub_name(self.number, silo) if self.keeps_nothing(silo, text) else None
        role = ClientRole(
            agreed=agreed, post=Post(agreed.dtype, follows=hub), silo=silo, group=self.number, groups=groups,
            selection=self.selection(ids), client=client, channels=agreed.channels(silo), beforehand=self.beforehand,
        )  # fmt: skip
        first = Blocks(self.vectors[silo].first) if agreed.is_alone(silo) else Blocks()
        return Party(client_name(self.number, silo, number), role, text, self.house(silo, number), first)

    def below(self) -> Below:
        """What a server has of the group."""
        channels = Channels(self.agreed.codecs, self.agreed.seed)
        if not self.server_keeps:
            return Below(self.number, self.agreed, channels)
        keepers = tuple(self.keeper(j) for j in self.agreed.silos)
        return Below(self.number, self.agreed, channels, keepers, self.selection())


def _servers_above(number: int, groups: list[Group], tiers: tuple[Ids, ...]) -> tuple[Above, ...]:
    """By level, for the hubs of a group."""
    found = []
    for level, tier in enumerate(tiers):
        first = int(np.flatnonzero(tier == tier[number])[0])
        found.append(Above(server_name(level, int(tier[number])), groups[first].agreed.seed, first == number))
    return tuple(found)


def _server(level: int, member: int, below: list[Group], text: Any, groups: int) -> Party:
    first = below[0]
    role = ServerRole(
        agreed=first.agreed, beforehand=first.beforehand, post=Post(first.agreed.dtype), groups=groups, level=level,
        below=tuple(group.below() for group in below), sizes=tuple(one.size for one in first.vectors),
    )  # fmt: skip
    every = tuple(one.first for one in first.vectors) if first.server_keeps and level == 0 else ()
    name = server_name(level, member)
    return Party(name, role, text, name, Blocks(every=every))
