"""Hubs and clients of a federation put together, each with its own share of the data, and their rounds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import numpy as np
from torch import Tensor

from crosshatch.codecs import AnyCodec
from crosshatch.data.federated import FederatedData, require_groups_of_whole_clients
from crosshatch.errors import ConfigError
from crosshatch.exchanges import Algorithm, Grouped, Memory, batch_source, declared, with_division
from crosshatch.local.anchors import Anchors
from crosshatch.local.read_chain import draws_random_numbers
from crosshatch.protocol.class_means import find_anchors
from crosshatch.protocol.members import Member, members_of, one_party_silos, pair, tiers_of
from crosshatch.protocol.names import CODED
from crosshatch.protocol.refusals import (
    check_clients,
    check_codecs,
    check_derivatives,
    check_head,
    check_optimiser,
    check_topology,
    check_transfer,
    check_turns,
    require_memory,
)
from crosshatch.task.probe import ROWS
from crosshatch.task.task import Task
from crosshatch.testing.parties.agreed import Agreed
from crosshatch.testing.parties.client import Client
from crosshatch.testing.parties.exchanges.legs import Parties
from crosshatch.testing.parties.exchanges.party_federation import PartyFederation
from crosshatch.testing.parties.exchanges.party_groups import PartyServers
from crosshatch.testing.parties.hub import Hub
from crosshatch.testing.parties.model import Model
from crosshatch.testing.parties.post import Post
from crosshatch.testing.parties.values_by_party import Blocks


class VerticalParties:
    """Hubs and clients, of one vertical federation or of each group, and what the hubs hold between rounds."""

    def __init__(
        self, data: FederatedData, task: Task, algorithm: Algorithm, *, seed: int, codecs: Mapping[str, AnyCodec],
        post: Post,
    ) -> None:  # fmt: skip
        """Cut the data into what each party holds."""
        self.algorithm, self.post = with_division(algorithm), post
        widths = task.check_fit([silo.train[:ROWS] for silo in data.silos], data.classes)
        self._check(data, task, codecs)
        members = members_of(data, seed=seed)
        groups = tuple(self._federation(n, member, task, widths, codecs) for n, member in enumerate(members))
        self.servers = PartyServers(groups, tiers_of(len(groups), data.group_shape), self.post)
        self.memory: Memory = ()
        self.blocks = tuple(Blocks(tuple(hub.model.first for hub in group.parties.hubs)) for group in groups)

    @property
    def weights(self) -> tuple[Tensor, ...]:
        """What the hubs hold, averaged over groups."""
        return self.servers.model(self.blocks)

    def run_round(self, r: int) -> None:
        """The algorithm's text, once, for all parties."""
        self.servers.begin_round(r)
        groups, text = self.servers.groups, cast(Any, self.algorithm)
        grouped = len(groups) > 1
        fed, before = (Grouped(groups, self.servers), self.blocks) if grouped else (groups[0], self.blocks[0])
        if declared(text).remembers:
            after, self.memory = require_memory(text, text.run_round(fed, before, r, self.memory))
        else:
            after = text.run_round(fed, before, r)
        self.blocks = after if grouped else (after,)

    def _check(self, data: FederatedData, task: Task, codecs: Mapping[str, AnyCodec]) -> None:
        """What no party would begin with."""
        name = type(self.algorithm).__name__
        if declared(self.algorithm).central:
            raise ConfigError(f"algorithm {name} does not run party by party: use one with clients and hubs")
        check_head(data, task)
        check_optimiser(data, task, name, codecs)
        known = declared(self.algorithm)
        check_topology(data, name, self.algorithm.topology)
        check_transfer(data, task, name, self.algorithm.topology)
        check_derivatives(data, task, name, continued=known.continues_derivatives)
        check_turns(task, name, self.algorithm.topology, turns=known.takes_turns)
        check_codecs(data, codecs)
        require_groups_of_whole_clients(data)
        for exchange in codecs:
            if exchange not in CODED:
                raise ConfigError(f"codecs has {exchange!r}: the exchanges are {', '.join(CODED)}")

    def _federation(
        self, number: int, member: Member, task: Task, widths: tuple[int, ...], codecs: Mapping[str, AnyCodec]
    ) -> PartyFederation:
        known = declared(self.algorithm)
        data, topology, in_pairs = member.data, self.algorithm.topology, known.pairs
        where = member.suffix.replace("@", " in group ")
        name, several = type(self.algorithm).__name__, known.several_clients
        check_clients(data, name, topology, pairs=in_pairs, several=several, where=where)
        pairs = zip(task.blocks, data.silos, strict=True)
        one_party = one_party_silos(topology, [silo.clients for silo in data.silos])
        data = pair(data) if in_pairs else data
        agreed = Agreed(
            owners=tuple(silo.owners for silo in data.silos),
            clients=tuple(silo.clients for silo in data.silos),
            widths=widths,
            one_party=one_party,
            label_holder=None if data.label_silo is None else data.label_holder,
            head_holder=task.head_holder,
            source=batch_source(self.algorithm, seed=member.batch_seed, group=number),
            codecs=codecs,
            seed=member.codec_seed,
            dtype=data.silos[0].train.dtype,
            by_number=any(draws_random_numbers(block, silo.train[:2]) for block, silo in pairs),
            branches=data.branches,
            averages_moments=task.optimiser is not None and task.optimiser.state == "averaged",
            hubs_together=in_pairs,
        )
        models = [Model.of(task, j, widths) for j in agreed.silos]
        hubs = tuple(Hub(agreed, j, model, moments=model.no_moments()) for j, model in enumerate(models))
        anchors = find_anchors(data, task)
        every = tuple(
            tuple(
                _client(agreed, data, j, k, model, anchors if task.holds_head(j) else None)
                for k in range(agreed.clients[j])
            )
            for j, model in enumerate(models)
        )
        return PartyFederation(Parties(agreed, hubs, every, self.post))


def _client(
    agreed: Agreed, data: FederatedData, silo: int, number: int, model: Model, anchors: Anchors | None
) -> Client:
    """A client with copies of its own rows, and of its labels where it has them."""
    ids = np.flatnonzero(agreed.owners[silo] == number)
    knows = agreed.label_holder is None or agreed.label_holder == silo
    y = data.y_train[ids].clone() if knows else None
    return Client(agreed, silo, number, ids, data.silos[silo].train[ids].clone(), y, model, anchors=anchors)
