"""The parties' own clocks: a world of virtual time in which messages and local steps take what the network says.

Nothing goes wrong there. A message is under way for as long as its link takes, a party is busy while it makes steps,
and roles of one party (a hub and its client, a hospital's pairs) compute one after the other.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np

from crosshatch.exchanges import LocalSteps
from crosshatch.meter import Meter
from crosshatch.network import Direction, Network, in_groups
from crosshatch.parties.agents.dual_role import DualAgent
from crosshatch.parties.agents.token_roles import TokenAgent, TokenServer
from crosshatch.parties.line import Key, Name
from crosshatch.parties.parties_of import parties_of
from crosshatch.parties.party import Party
from crosshatch.parties.recovery.mail import Mail
from crosshatch.parties.roles.client_role import ClientRole
from crosshatch.parties.roles.hub_role import HubRole
from crosshatch.protocol.what_is_known import find_parts
from crosshatch.testing.federations import FederationCase
from crosshatch.testing.world import Station, World

_FOREVER = 2**31  # rounds


@dataclass
class NetworkTimes:
    """How long messages and steps take.

    `links` is filled in as messages are sent; what is not counted takes no time.
    """

    network: Network
    silos: tuple[str, ...]
    groups: int
    links: dict[tuple[Name, Name, Key], str | None] = field(default_factory=dict)
    _together: dict[tuple[str, Key], int] = field(default_factory=dict)

    def seconds(self, sender: Name, to: Name, key: Key, message: bytes) -> float:
        """Of one message, on the link of whoever is further from the centre; between equals on the sender's."""
        link = self.links[sender, to, key]
        if link is None:
            return 0.0
        kind, way = link.split(" ")
        ends = to if way == "down" else sender
        if kind == "agent-agent" and key[1] == "pass token":
            way = "up"  # one way, where a comparison is both ways at once
        size = len(message)
        if kind == "group-server" and ends.startswith("client"):  # of a hospital's pairs, all over its one link
            house = ends.rpartition("-")[0]
            size = self._together[house, key] = size + self._together.get((house, key), 0)
        where = self._named(ends, kind)
        return float(self.network.transfer(kind, cast(Direction, way), np.array([size]), *where)[0])

    def step(self, party: Party) -> float:
        """Of one local step; a client that is one party with its hub is as fast as that."""
        kind = "client-hub" if party.house == party.name else "hub-hub"
        return float(self.network.local_step(*self._named(party.name, kind))[0])

    def _named(self, name: Name, kind: str) -> tuple[str, Any]:
        """As a network knows a party: its silo, and its number there on a client's own link."""
        role, *numbers = name.split("-")
        if role == "agent":
            return self.silos[int(numbers[0])], None
        silo = self.silos[int(numbers[1])] + (f"@{numbers[0]}" if self.groups > 1 else "")
        return silo, np.array([int(numbers[2])]) if role == "client" and kind.startswith("client") else None


class _NotingMeter(Meter):
    """Counts, and notes the link of the message that is being sent."""

    link: str | None = None

    def count(self, link: str, exchange: str, *, messages: int, size: int) -> None:
        super().count(link, exchange, messages=messages, size=size)
        self.link = link


@dataclass(frozen=True)
class _ClockedLine:
    """A station's line that knows over which link a message goes."""

    station: Station
    times: NetworkTimes
    meter: _NotingMeter

    def send(self, to: Name, key: Key, message: bytes) -> None:
        self.times.links[self.station.name, to, key] = self.meter.link
        self.meter.link = None
        self.station.send(to, key, message)

    def recv(self, sender: Name, key: Key) -> bytes:
        return self.station.recv(sender, key)


def parties_seconds(case: FederationCase, network: Network, rounds: int) -> float:
    """When the last hub, server or agent has come to the end of the last round."""
    parties = parties_of(case.data, case.task, case.algorithm, seed=case.seed, codecs=case.codecs)
    groups = 1 if case.data.groups is None else len(np.unique(case.data.groups))
    network = in_groups(network, range(groups)) if groups > 1 else network
    times = NetworkTimes(network, case.task.names, groups)
    peers = {name: [other for other in parties if other != name] for name in parties}
    free: dict[Name, float] = {}  # by house: when it has done what it was asked to compute so far
    ends: dict[Name, float] = {}

    def live(station: Station) -> None:
        party = parties[station.name]
        post = party.role.post
        meter = post.meter = _NotingMeter()
        post.follows, post.followers = None, frozenset()  # everybody counts what it sends: so its link is known
        party.join(_ClockedLine(station, times, meter))

        def spend(steps: int) -> None:
            begin = max(world.now, free.get(party.house, 0.0))
            free[party.house] = begin + steps * times.step(party)
            station.spend(free[party.house] - world.now)

        _work_takes_time(party, spend)
        for _ in range(rounds):
            party.run_round()
        if not isinstance(party.role, ClientRole):
            ends[party.name] = world.now

    world = World(
        dict.fromkeys(parties, live), peers, times=times.seconds,
        mail=lambda station, transmit: Mail(station.name, tuple(peers[station.name]), transmit, rounds=_FOREVER),
    )  # fmt: skip
    world.run()
    return max(ends.values())


def _work_takes_time(party: Party, spend: Callable[[int], None]) -> None:
    """Put the time of local steps before them."""
    role: Any = party.role
    if isinstance(role, ClientRole):
        inside, compute = role.client, role.client.descend

        def descend(block: Any, known: Any, head: Any, local: LocalSteps) -> Any:
            used, _ = find_parts(local, [len(then.parts) for then, _ in known])
            counts = inside.counts(known[0][0])
            taken = [used[(local.first + q) % len(used)] if len(used) > 1 else used[0] for q in range(local.steps)]
            # Of an earlier batch that it has nothing of it takes the newest instead: it rests in the newest alone.
            spend(sum(number > 0 or counts[part] > 0 for number, part in taken))
            return compute(block, known, head, local)

        vars(inside)["descend"] = descend
    elif isinstance(role, TokenAgent):
        visit = role.visit

        def timed(tokens: Any, *, steps: int, step_size: float | None) -> Any:
            spend(steps * int((tokens.at == role.agent.number).sum()))
            return visit(tokens, steps=steps, step_size=step_size)

        vars(role)["visit"] = timed
    elif isinstance(role, DualAgent):
        move = role.descend

        def one(own: Any) -> Any:
            spend(1)
            return move(own)

        vars(role)["descend"] = one
    else:
        assert isinstance(role, HubRole | TokenServer) or party.name.startswith(("server", "branch"))
