"""The only way from one party to another: bytes written by the wire format, counted, and read again."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from torch import Tensor

from crosshatch import wire
from crosshatch.meter import Meter
from crosshatch.protocol.message_contents import Call

_RUN = "0badcafe"
_OF_BLOCKS = ("broadcast", "average", "average_groups")


@dataclass
class Post:
    """Carries messages and counts them by the length of what was really written."""

    meter: Meter = field(default_factory=Meter)

    def carry(self, link: str | None, call: Call, *tensors: Tensor) -> tuple[Tensor, ...]:
        """What the receiver reads; without a link (hub and client are one party) nothing is counted.

        A block without numbers, that of a silo with labels alone, is not sent at all.
        """
        if call.exchange in _OF_BLOCKS and not any(tensor.numel() for tensor in tensors):
            return tensors
        message = wire.encode(_RUN, call.round, call.exchange, tensors, step=call.use)
        if link is not None:
            self.meter.count(link, call.exchange, messages=1, size=len(message))
        header, arrived = wire.decode(message)
        assert (header.round, header.exchange, header.step) == (call.round, call.exchange, call.use)
        return arrived


@dataclass
class Uses:
    """How many times each exchange was used in this round: every party counts the same, all run the same text."""

    _count: Counter[str] = field(default_factory=Counter)

    def begin_round(self) -> None:
        """No exchange was used yet."""
        self._count.clear()

    def call(self, exchange: str, round: int) -> Call:
        """The next use."""
        self._count[exchange] += 1
        return Call(exchange, round, self._count[exchange] - 1)
