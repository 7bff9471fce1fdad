"""Parties that train in a world where things go wrong, each storing its state at its own interval."""

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from random import Random
from typing import Any, Generic, Protocol, TypeVar

from crosshatch.parties.line import LeftBehind, Line, Name
from crosshatch.parties.recovery.mail import Frame, Mail
from crosshatch.parties.recovery.packed_state import StoredState, pack, unpack
from crosshatch.private_randomness import PrivateSeed
from crosshatch.testing.faults import FaultCounts, Faults
from crosshatch.testing.world import Station, World

_RUN = "0badcafe"
_INTERVALS = (1, 1, 2, 3)  # rounds between two states of a party, one of these


class Restarted(Protocol):
    """A party, as a world of virtual time needs it."""

    round: int

    @property
    def ended(self) -> bool:
        """Whether it was decided that no round follows."""

    def join(self, line: Line) -> None:
        """Send and receive over this line from now on."""

    def run_round(self) -> None:
        """Run the next round of the algorithm's text."""

    def state(self) -> Any:
        """All that the next round depends on, taken between two rounds."""

    def load(self, state: Any) -> None: ...

    @property
    def follows(self) -> Name | None:
        """The hub whose stored round it begins at, if it keeps nothing itself."""

    def catch_up(self, round: int, *, over: bool) -> None: ...


P = TypeVar("P", bound=Restarted)


@dataclass(frozen=True)
class Disturbed(Generic[P]):
    """The parties at the end, and what happened on the way."""

    parties: dict[Name, P]
    counted: FaultCounts
    rounds_kept: int  # for how many rounds messages may be kept for one party


def run_disturbed(
    fresh: Mapping[Name, P],
    peers: Mapping[Name, Sequence[Name]],
    *,
    rounds: int,
    seed: int,
    faults: Faults | None = None,
) -> Disturbed[P]:
    """Parties that have not begun, after so many rounds in a world with faults (drawn from the seed by default).

    At each start a party is a new copy of the fresh one that loads what is on its disk, and nothing else.
    """
    random = Random(seed)
    faults = Faults.drawn(random) if faults is None else faults
    every = {name: random.choice(_INTERVALS) for name in fresh}
    begun: dict[Name, StoredState] = {}
    parties: dict[Name, P] = {}

    def mail(station: Station, transmit: Callable[[Name, Frame], None]) -> Mail:
        name = station.name
        if name in world.disk:
            begun[name] = unpack(world.disk[name], run=_RUN, party=name)
        else:
            secret = PrivateSeed.fresh(_RUN).secret
            begun[name] = StoredState(_RUN, name, 0, fresh[name].state(), secret=secret)
        now = begun[name]
        return Mail(
            name, tuple(peers[name]), transmit, stored=now.round, sent=now.sent, heard=dict(now.heard),
            rounds=max(_INTERVALS) + 1, follows=fresh[name].follows,
            followers=frozenset(one for one, party in fresh.items() if party.follows == name),
        )  # fmt: skip

    def live(station: Station) -> None:
        name, secret = station.name, begun[station.name].secret
        party = parties[name] = deepcopy(fresh[name])
        party.load(begun[name].value)
        party.join(station)

        def store() -> None:
            kept, heard = station.mail.kept(), station.mail.heard
            state = StoredState(_RUN, name, party.round, party.state(), kept, heard, secret)
            station.store(party.round, pack(state))

        if name not in world.disk:  # the secret is stored before anything that depends on it is sent
            store()
            station.finish_storing()
        while not party.ended and party.round < rounds:
            try:
                party.run_round()
            except LeftBehind:
                party.catch_up(station.mail.heard[party.follows or ""], over=station.mail.over)
            if party.follows is None and party.round % every[name] == 0:
                store()
        station.finish_storing()
        if station.mail.stored < party.round:
            store()
            station.finish_storing()
        station.mail.say_stored(over=party.ended)

    world = World(dict.fromkeys(fresh, live), peers, mail=mail, seed=seed, faults=faults)
    world.run()
    return Disturbed(parties, world.counted, max(_INTERVALS) + 2)
