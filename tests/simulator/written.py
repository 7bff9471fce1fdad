"""Messages as their parties would write them: tensors of shapes worked out by a test, encoded for real and counted.

Nothing here asks the engine who sends what. What is known of messages beyond the tensors' shapes is in the few names at
the top, in one place.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from crosshatch import wire
from crosshatch.codecs import AnyCodec, Codec
from crosshatch.simulator.simulator import Simulator

Totals = dict[str, list[int]]


def numbers(*shape: int) -> Tensor:
    """Some numbers to send."""
    return torch.randn(shape)


def size_of(*modules: nn.Module) -> int:
    """How many numbers of these modules travel."""
    return sum(parameter.numel() for module in modules for parameter in module.parameters() if parameter.requires_grad)


def model_with_head(block: int, head: int) -> tuple[Tensor, ...]:
    """What the head's holder sends of its model: block and head as one vector."""
    return (numbers(block + head),)


def encoded(codec: AnyCodec, *shapes: tuple[int, int]) -> Tensor:
    """Numbers of these shapes as a codec writes them, one behind the other."""
    assert isinstance(codec, Codec)
    return torch.frombuffer(bytearray(b"".join(codec.encode(numbers(*shape)) for shape in shapes)), dtype=torch.uint8)


class Written:
    """Counts the messages of some rounds."""

    def __init__(self) -> None:
        """Nothing was sent yet."""
        self.links: Totals = defaultdict(lambda: [0, 0])
        self.exchanges: Totals = defaultdict(lambda: [0, 0])
        self.round = 0

    def send(self, link: str, exchange: str, *tensors: Tensor, step: int = 0) -> None:
        """One message over a link."""
        length = len(wire.encode("0badcafe", self.round, exchange, tensors, use=step))
        for entry in (self.links[link], self.exchanges[exchange]):
            entry[0] += length
            entry[1] += 1

    def assert_metered(self, simulator: Simulator) -> None:
        """The meter has the same messages and bytes: by link, by exchange and together."""
        meter = simulator.meter
        assert meter.links == dict(self.links)
        assert meter.exchanges == dict(self.exchanges)
        assert meter.messages == sum(count for _, count in self.links.values())
        assert meter.bytes == sum(size for size, _ in self.links.values())


def share(
    written: Written, rows: Sequence[dict[int, int]], batch: int, width: int, *, single: Sequence[int] = ()
) -> None:
    """Embeddings of one width that are summed: `rows[j]` are the rows of each client of silo j, of `batch` together.

    In a `single` silo the client is the hub.
    """
    for j, clients in enumerate(rows):
        if j not in single:
            for n in clients.values():
                written.send("client-hub up", "share", numbers(n, width))  # its own outputs
                written.send("client-hub down", "share", numbers(n, width))  # the sum of the others'
        for other in range(len(rows)):
            if other != j:
                written.send("hub-hub across", "share", numbers(batch, width))
