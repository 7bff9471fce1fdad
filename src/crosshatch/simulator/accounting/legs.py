"""A leg of an exchange: messages that parties of one kind send to those of another, as data; and who is at work."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from crosshatch.network import Direction, Seconds
from crosshatch.protocol.batches import Ids
from crosshatch.protocol.message_contents import Call, Contents, Specs

ClientLink = Literal["client-hub", "client-server"]


class ClientLeg(NamedTuple):
    """One message each between the clients at work of some silos, in ascending order, and who is above them.

    Messages are about all rows of a client or so many; about 0 there is none. Above are the hubs, the server in their
    place, or branches: what these send leaves at their time `when`, and for what they get no hub waits.
    """

    call: Call
    direction: Literal["up", "down"]
    silos: tuple[int, ...]
    contents: Sequence[Contents]  # by silo
    rows: Ids | None = None
    link: ClientLink = "client-hub"
    hubs_wait: bool = True
    when: Seconds | None = None


class HubLeg(NamedTuple):
    """Every sender to every receiver but itself; `specs[i]` is what sender i sends or, `down`, what receiver i gets."""

    call: Call
    direction: Direction
    senders: Sequence[int]
    receivers: Sequence[int]
    specs: Sequence[Specs]


class AtWork(NamedTuple):
    """The clients at work of some silos, one silo's behind another's."""

    silos: list[int]
    clients: Sequence[Ids]  # of each silo
    rows: Ids  # samples of all parts at each client: at least one
    lengths: Sequence[int]  # how many clients of each silo
    places: Sequence[slice]  # where each silo's clients stand among these
    where: Ids | slice  # the clients' places among all clients at work
    clocks: Seconds  # of all clients at work
