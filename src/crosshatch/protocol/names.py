"""The names that all parties give to what they exchange, to how they average, and to what they draw.

A channel is one way of an exchange whose codec may keep a memory at both ends: its name says who sends, and to whom
where receivers get different messages. Random numbers come from a seed and a name, so nobody has to send them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

ClientWeights = Literal["equal", "samples", "at_work"]
"""How clients count in an average: all of a silo alike, by the samples they hold, or only those at work, alike."""
CODED = ("share", "head", "derivatives", "broadcast", "average", "average_groups")
"""What may have a codec, by the names in a config: the exchanges, and the head that `share` sends along."""


def share_channel(silo: int, to: int | None = None) -> str:
    """The channel of a silo's embeddings, to everybody or to one silo."""
    return str(silo) if to is None else f"{silo} to {to}"


def head_channel(to: int | None) -> str:
    """The channel of the head, to everybody or to one silo."""
    return "all" if to is None else f"to {to}"


def derivative_channels(asking: Sequence[int], *, each: bool) -> dict[str, Sequence[int]]:
    """Channels of the derivatives for these silos, by name with the silos each serves: one serves all of them, or one.

    >>> derivative_channels([0, 2], each=False), derivative_channels([0, 2], each=True)
    ({'all': [0, 2]}, {'0': [0], '2': [2]})
    """
    return {str(j): [j] for j in asking} if each else {"all": asking}


def block_channel(silo: int, depth: int = 0) -> str:
    """The channel of a silo's block between its hub (or its branches at a depth) and the clients."""
    return f"{silo} at depth {depth}" if depth else str(silo)


def server_channel(silo: int, way: Literal["up", "down"], level: int) -> str:
    """The channel of a silo's block between the hubs of groups and the server of a tier."""
    return f"{silo} {way} {level}"
