"""Turns messages and local steps into seconds.

A network model answers two questions: how long a message takes on a link, and how long a party takes for a local step.
`Clocks` holds the time of every party; whoever receives waits for its slowest sender.

Links: `client-hub`, `client-server` (on the client's line too, unless it is given one of its own), `branch-hub`,
`hub-hub`, `group-server`, `agent-agent`, `agent-server`. Directions: `up`
towards the hub, the label's holder or the server, `down` back, `across` for a mutual exchange.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Literal, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from crosshatch.errors import ConfigError

T = TypeVar("T")
Direction = Literal["up", "down", "across"]
Seconds = npt.NDArray[np.float64]
_LARGEST = 1e12
MOST_NETWORKS = 9
LINKS = ("client-hub", "client-server", "branch-hub", "hub-hub", "group-server", "agent-agent", "agent-server")


class Network(Protocol):
    """What the simulator asks of a network model. Parties are named `silo` (a hub) or `silo/client`."""

    @property
    def named(self) -> Mapping[str, str]:
        """Parties with settings of their own, and where these are."""
        ...

    def transfer(
        self, link: str, direction: Direction, sizes: npt.NDArray[np.int64], silo: str, clients: Clients
    ) -> Seconds:
        """Seconds each message takes; `sizes` in bytes, one message per client (`clients` None: the hub itself)."""
        ...

    def local_step(self, silo: str, clients: Clients) -> Seconds:
        """Seconds each of these clients needs for one local step."""
        ...


Clients = npt.NDArray[np.int64] | None


@dataclass(frozen=True)
class ConstantNetwork:
    """The TDCD paper's model: a round trip costs `t_comm`, a local step `t_comp`, whatever the size.

    A message one way is half a round trip; the hubs' mutual exchange counts as a full one, as in section 5.2 of the
    paper, so a TDCD round takes `3 t_comm + Q t_comp`. `slow` multiplies the times of named parties (stragglers).

    >>> ConstantNetwork(t_comm=10.0, t_comp=1.0).local_step("bank", None)
    array([1.])
    """

    t_comm: float = 10.0
    t_comp: float = 1.0
    slow: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _check_times({"t_comm": self.t_comm, "t_comp": self.t_comp}, self.slow)

    @property
    def named(self) -> Mapping[str, str]:
        return dict.fromkeys(self.slow, "network.slow")

    def transfer(
        self, link: str, direction: Direction, sizes: npt.NDArray[np.int64], silo: str, clients: Clients
    ) -> Seconds:
        """Half a round trip per message, a whole one for a mutual exchange."""
        del link
        base = self.t_comm if direction == "across" else self.t_comm / 2
        return base * _factors(self.slow, silo, clients, len(sizes)) if self.slow else _same(len(sizes), base)

    def local_step(self, silo: str, clients: Clients) -> Seconds:
        count = 1 if clients is None else len(clients)
        return self.t_comp * _factors(self.slow, silo, clients, count)


@dataclass(frozen=True)
class Link:
    """Latency in seconds, bandwidth in megabits per second: `up` for what the lower party sends, `down` for the rest.

    >>> Link(latency=0.05, up=14.0, down=110.0).down
    110.0
    """

    latency: float = 0.0
    up: float = float("inf")
    down: float = float("inf")


@dataclass(frozen=True)
class BandwidthNetwork:
    """Latency plus size over bandwidth, per kind of link; `parties` override the link or the step time of one party.

    >>> network = BandwidthNetwork(links={"client-hub": Link(latency=0.05, up=14.0, down=110.0)}, step_seconds=0.002)
    >>> float(network.transfer("client-hub", "up", np.array([1_750_000]), "bank", np.array([0]))[0])
    1.05
    """

    links: Mapping[str, Link] = field(default_factory=dict)
    step_seconds: float = 0.0
    parties: Mapping[str, Link] = field(default_factory=dict)
    slow: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for kind in self.links:
            if kind not in LINKS:
                raise ConfigError(f"network.links has {kind!r}: the kinds of link are {', '.join(LINKS)}")
        for key, table in (("links", self.links), ("parties", self.parties)):
            for name, link in table.items():
                for part in ("latency", "up", "down"):
                    _check_positive(f"network.{key} '{name}' {part}", getattr(link, part), zero=part == "latency")
        _check_times({"step_seconds": self.step_seconds}, self.slow)
        _check_names("network.parties", self.parties)

    @property
    def named(self) -> Mapping[str, str]:
        return dict.fromkeys(self.slow, "network.slow") | dict.fromkeys(self.parties, "network.parties")

    def transfer(
        self, link: str, direction: Direction, sizes: npt.NDArray[np.int64], silo: str, clients: Clients
    ) -> Seconds:
        if link == "client-server" and link not in self.links:
            link = "client-hub"
        base = self.links.get(link, Link())
        seconds = _link_seconds(base, direction, sizes)
        for index, name in _named(self.parties, silo, clients):
            seconds[index] = _link_seconds(self.parties[name], direction, sizes[index : index + 1])[0]
        return seconds

    def local_step(self, silo: str, clients: Clients) -> Seconds:
        count = 1 if clients is None else len(clients)
        return np.full(count, self.step_seconds) * _factors(self.slow, silo, clients, count)


@dataclass(frozen=True)
class SeveralNetworks:
    """Networks under which the seconds of one training are counted; the first is the run's own, and decides.

    >>> several = SeveralNetworks((ConstantNetwork(t_comm=10.0), ConstantNetwork(t_comm=100.0)))
    >>> float(several.transfer("hub-hub", "across", np.array([8]), "bank", None)[0]), len(several.networks)
    (10.0, 2)
    """

    networks: tuple[ConstantNetwork | BandwidthNetwork, ...]

    def __post_init__(self) -> None:
        """Refuse none, and more than metrics.jsonl has columns for."""
        if not 1 <= len(self.networks) <= MOST_NETWORKS:
            raise ConfigError(f"network has {len(self.networks)} entries: give at least 1, at most {MOST_NETWORKS}")

    @property
    def named(self) -> Mapping[str, str]:
        return {name: place for network in self.networks for name, place in network.named.items()}

    def transfer(
        self, link: str, direction: Direction, sizes: npt.NDArray[np.int64], silo: str, clients: Clients
    ) -> Seconds:
        return self.networks[0].transfer(link, direction, sizes, silo, clients)

    def local_step(self, silo: str, clients: Clients) -> Seconds:
        return self.networks[0].local_step(silo, clients)


@dataclass(frozen=True)
class WithoutMessages:
    """Another network, had messages taken no time: what is left of the seconds is computing."""

    network: Network

    @property
    def named(self) -> Mapping[str, str]:
        return self.network.named

    def transfer(
        self, link: str, direction: Direction, sizes: npt.NDArray[np.int64], silo: str, clients: Clients
    ) -> Seconds:
        del link, direction, silo, clients
        return np.zeros(len(sizes))

    def local_step(self, silo: str, clients: Clients) -> Seconds:
        return self.network.local_step(silo, clients)


def each_network(network: Network, why_not: str = "") -> tuple[Network, ...]:
    """The networks that seconds are counted under; `why_not` says why there can only be one."""
    if not isinstance(network, SeveralNetworks):
        return (network,)
    if why_not:
        raise ConfigError(f"network is a list of {len(network.networks)}, but {why_not}: give one [network]")
    return network.networks


def in_groups(network: Network, groups: Sequence[int]) -> Network:
    """The same network where silos are named `silo@group`: what is set for a silo holds in every group.

    What is set for a silo in one group goes before it. Network models of other kinds find out for themselves.

    >>> in_groups(ConstantNetwork(slow={"bank": 2.0, "bank@1": 3.0}), [0, 1]).named.keys()
    dict_keys(['bank@0', 'bank@1'])
    """
    if isinstance(network, SeveralNetworks):
        return SeveralNetworks(tuple(in_groups(one, groups) for one in network.networks))  # type: ignore[misc]
    if isinstance(network, BandwidthNetwork):
        return replace(network, slow=_spread(network.slow, groups), parties=_spread(network.parties, groups))
    return replace(network, slow=_spread(network.slow, groups)) if isinstance(network, ConstantNetwork) else network


def _spread(table: Mapping[str, T], groups: Sequence[int]) -> dict[str, T]:
    everywhere: dict[str, T] = {}
    for name, value in table.items():
        silo, slash, client = name.rpartition("/") if "/" in name else (name, "", "")
        everywhere |= {} if "@" in silo else {f"{silo}@{group}{slash}{client}": value for group in groups}
    return everywhere | {name: value for name, value in table.items() if "@" in name}


@dataclass
class Clocks:
    """Seconds on the clock of every hub, and of branches within a round."""

    hubs: Seconds
    branches: dict[tuple[int, int], Seconds] = field(default_factory=dict)  # of silo and depth, within a round

    @property
    def now(self) -> float:
        """The federation's time: that of the last hub."""
        return float(self.hubs.max())


def _check_positive(place: str, value: float, *, zero: bool = False) -> None:
    """A bandwidth may be infinite; a time or a factor, which may be zero, may not."""
    if not (value > 0 or (zero and value == 0)) or (zero and value == float("inf")):
        raise ConfigError(f"{place} = {value}: must be {'a finite number of at least' if zero else 'above'} 0")
    # beyond, sums over a long run would no longer be finite
    if zero and value > _LARGEST:
        raise ConfigError(f"{place} = {value}: must be at most {_LARGEST:g}")
    if not zero and value < 1 / _LARGEST:
        raise ConfigError(f"{place} = {value}: must be at least {1 / _LARGEST:g} megabits per second")


def _check_times(times: Mapping[str, float], slow: Mapping[str, float]) -> None:
    for name, value in {**times, **{f"slow.{party}": factor for party, factor in slow.items()}}.items():
        _check_positive(f"network.{name}", value, zero=True)
    _check_names("network.slow", slow)


def _check_names(place: str, table: Mapping[str, object]) -> None:
    for name in table:
        if "/" in name and not name.rpartition("/")[2].isdecimal():
            raise ConfigError(f"{place} has {name!r}: a client is named by its silo and number, like 'bank/3'")


def _link_seconds(link: Link, direction: Direction, sizes: npt.NDArray[np.int64]) -> Seconds:
    megabits = link.up if direction in ("up", "across") else link.down
    return np.asarray(link.latency + sizes * 8e-6 / megabits, dtype=np.float64)


def _named(table: Mapping[str, object], silo: str, clients: Clients) -> list[tuple[int, str]]:
    """Positions among these clients (or the hub) whose name is a key of the table."""
    if not table:
        return []
    if clients is None:
        return [(0, silo)] if silo in table else []
    wanted = {int(name.rpartition("/")[2]): name for name in table if name.rpartition("/")[0] == silo}
    return [(int(np.flatnonzero(clients == c)[0]), name) for c, name in wanted.items() if (clients == c).any()]


@lru_cache(maxsize=16)
def _same(count: int, seconds: float) -> Seconds:
    same = np.full(count, seconds)
    same.flags.writeable = False
    return same


def _factors(slow: Mapping[str, float], silo: str, clients: Clients, count: int) -> Seconds:
    factors = np.ones(count)
    for index, name in _named(slow, silo, clients):
        factors[index] = slow[name]
    return factors
