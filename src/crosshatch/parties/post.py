"""A party's end of its line: messages are written and read by the wire format, and what is sent is counted."""

from abc import ABC
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from crosshatch import wire
from crosshatch.errors import MessageError
from crosshatch.meter import Meter
from crosshatch.parties.line import Key, Line, Name
from crosshatch.protocol.message_contents import Call

Shape = tuple[int, ...]
CLIENT_UP = "client-hub up"
"""The link from a client to its hub."""
_OF_BLOCKS = ("broadcast", "average", "average_groups")


@dataclass
class Post:
    """Sends and receives tensors on a line; `meter` counts what the party itself has sent, by its real length.

    What is not training has a `prefix` to its exchanges, so that its keys are its own. A party that keeps nothing from
    round to round `follows` its hub, which counts what it sends.
    """

    dtype: torch.dtype
    run: str = "0badcafe"
    line: Line = field(init=False)  # there is none before somebody joins the party to the others
    meter: Meter = field(default_factory=Meter)
    prefix: str = ""
    follows: Name | None = None
    followers: frozenset[Name] = frozenset()

    def send(self, to: Name, link: str | None, call: Call, *tensors: Tensor) -> None:
        """One message; without a link (both are roles of one party) it is not counted.

        A block without numbers, that of a silo with labels alone, takes no bytes and is not counted either.
        """
        empty = call.exchange in _OF_BLOCKS and not any(tensor.numel() for tensor in tensors)
        exchange = self.prefix + call.exchange
        message = b"" if empty else wire.encode(self.run, call.round, exchange, tensors, use=call.use)
        if link is not None and message and self.follows is None:
            self.meter.count(link, call.exchange, messages=1, size=len(message))
        self.line.send(to, (call.round, exchange, call.use), message)

    def recv(self, sender: Name, call: Call, *shapes: Shape | None) -> tuple[Tensor, ...]:
        """What a party sent in this use of an exchange.

        It begins with tensors of these shapes, of numbers as everybody has them; None: one that a codec wrote, or any.
        """
        key = (call.round, self.prefix + call.exchange, call.use)
        message = self.line.recv(sender, key)
        if not message:
            return (torch.empty(0, dtype=self.dtype),)
        if sender in self.followers:
            self.meter.count(CLIENT_UP, call.exchange, messages=1, size=len(message))
        header, tensors = wire.decode(message)
        if (header.round, header.exchange, header.use) != key:
            raise MessageError(f"{sender} sent {header.exchange!r} of round {header.round} as {_words(key)}")
        found = [(one.dtype, tuple(one.shape)) for one in tensors]
        if len(found) < len(shapes) or any(
            shape is not None and one != (self.dtype, tuple(shape)) for one, shape in zip(found, shapes, strict=False)
        ):
            due = ", ".join("any" if one is None else _shape(self.dtype, one) for one in shapes)
            sent = ", ".join(_shape(*one) for one in found)
            raise MessageError(
                f"{sender} sent {sent or 'nothing'} as {_words(key)}, {due} is due: has it the same text and settings?"
            )
        return tensors


def _words(key: Key) -> str:
    return f"{key[1]!r} of round {key[0]}, use {key[2]}"


def _shape(dtype: torch.dtype, shape: Shape) -> str:
    return f"{' x '.join(map(str, shape)) or 'one'} {str(dtype).removeprefix('torch.')}"


@dataclass
class Uses:
    """How many times each exchange was used in this round: every party counts the same, all run the same text."""

    _count: Counter[str] = field(default_factory=Counter)

    def begin_round(self) -> None:
        self._count.clear()

    def call(self, exchange: str, round: int) -> Call:
        self._count[exchange] += 1
        return Call(exchange, round, self._count[exchange] - 1)


@dataclass(kw_only=True)
class Correspondent(ABC):
    """Who sends and receives for a party, in training or in an evaluation."""

    post: Post
    uses: Uses = field(default_factory=Uses)
    round: int = 0

    def begin_round(self, round: int) -> None:
        self.round = round
        self.uses.begin_round()

    def state(self) -> dict[str, Any]:
        """What it carries from round to round beside the text's values, as plain data."""
        return {"meter": self.post.meter.snapshot()}

    def load(self, state: Mapping[str, Any]) -> None:
        self.post.meter.load(state["meter"])
