"""The names that all parties give to what they exchange, to how they average, and to what they draw.

A channel is one way of an exchange whose codec may keep a memory at both ends: its name says who sends, and to whom
where receivers get different messages. Random numbers come from a seed and a name, so nobody has to send them.
"""

from __future__ import annotations

from typing import Literal

from crosshatch.seeds import torch_seed

ClientWeights = Literal["equal", "samples", "at_work"]
"""How clients count in an average: all of a silo alike, by the samples they hold, or only those at work, alike."""
CODED = ("share", "head", "derivatives", "broadcast", "average", "average_groups")
"""What may have a codec, by the names in a config: the exchanges, and the head that `share` sends along."""


def embeddings_channel(sender: int, to: int | None) -> str:
    """Of a silo's embeddings, to everybody or to one silo."""
    return str(sender) if to is None else f"{sender} to {to}"


def head_channel(to: int | None) -> str:
    """Of the head, to everybody or to one silo."""
    return "all" if to is None else f"to {to}"


def derivatives_channel(to: int | None) -> str:
    """Of derivatives from the labels' holder: one that serves all silos, or a silo's own."""
    return "all" if to is None else str(to)


def block_channel(silo: int, depth: int = 0) -> str:
    """Of a silo's block between its hub (or its branches at a depth) and the clients."""
    return f"{silo} at depth {depth}" if depth else str(silo)


def server_channel(silo: int, way: Literal["up", "down"], level: int) -> str:
    """Of a silo's block between the hubs of groups and the server of a tier."""
    return f"{silo} {way} {level}"


def group_seed(seed: int, group: int) -> int:
    """From which a group draws batches and selections."""
    return torch_seed(seed, "group", group)


def group_codec_seed(seed: int, group: int) -> int:
    """From which a group draws what codecs and blocks need."""
    return torch_seed(seed, "codecs", group)
