"""Whoever keeps a silo's block for its clients: it tells them the block, and averages what they make of it.

The simulator does the same for all silos at once in `simulator/vertical/averaging.py`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from crosshatch.channels import Channels
from crosshatch.local.moments import Moments
from crosshatch.parties.holdings.agreed import Agreed, Roster
from crosshatch.parties.holdings.vectors import Vectors
from crosshatch.protocol.message_contents import Call
from crosshatch.protocol.names import ClientWeights


@dataclass
class Keeper:
    """A hub, or a server for one silo of one group. `moments` is the average of the clients' states, if any."""

    agreed: Agreed
    silo: int
    roster: Roster
    vectors: Vectors
    channels: Channels
    moments: Moments | None = None

    def tell(self, block: Tensor, clients: Sequence[int], call: Call) -> tuple[Tensor, dict[int, tuple[Tensor, ...]]]:
        """The block as clients will have it, and what each at work gets, with the moments where those are averaged.

        One that missed what the message builds on gets it whole.
        """
        value, name, along = self.vectors.sent(block), str(self.silo), self.sent_moments()
        draw = self.channels.draw("broadcast", name, (call.round, call.use))
        content = self.channels.write_vector(draw, value)
        whole = self.channels.see_vector(draw, content, len(value), self.agreed.dtype)
        if self.silo in self.agreed.one_party:  # the party got every message, whichever of its pairs it was for
            return self.vectors.filled(whole), dict.fromkeys(clients, (content, *along))
        contents = told_to_each(self.channels, "broadcast", name, clients, content, whole)
        return self.vectors.filled(whole), {k: (one, *along) for k, one in contents.items()}

    def due(self, exchange: str) -> list[tuple[int, ...] | None]:
        """The shapes of a block that comes in an exchange, and of the moments that come with it."""
        return [self.agreed.due(exchange, self.vectors.size), *(tuple(one.shape) for one in self.sent_moments())]

    def sent_moments(self) -> list[Tensor]:
        """What travels with a block where moments are averaged."""
        if not self.agreed.averages_moments or self.moments is None or self.agreed.is_alone(self.silo):
            return []
        return [self.vectors.sent_moments(self.moments)]

    def average(
        self,
        block: Tensor,
        told: Tensor | None,
        given: Mapping[int, tuple[Tensor, ...]],
        weights: ClientWeights,
        call: Call,
    ) -> Tensor:
        """The average over the clients, and that of their moments; those not at work count with the keeper's own.

        `told` is what they had.
        """
        mine = self.vectors.sent(block)
        blocks = {k: self.block_of(k, one[0], told, call) for k, one in given.items()}
        moments = {k: one[1] for k, one in given.items() if len(one) > 1}
        if moments:
            assert self.moments is not None
            mean = self._mean(self.vectors.sent_moments(self.moments), moments, weights)
            self.moments = self.vectors.filled_moments(mean)
        return self.vectors.filled(self._mean(mine, blocks, weights))

    def _mean(self, mine: Tensor, given: Mapping[int, Tensor], weights: ClientWeights) -> Tensor:
        total = torch.zeros_like(mine)
        for client, weight in enumerate(self.roster.weights(list(given), weights)):
            if client in given:
                total += weight * given[client]
            elif weight:
                total += weight * mine
        return total

    def block_of(self, client: int, content: Tensor, told: Tensor | None, call: Call) -> Tensor:
        """What a client's message says its block is; where a codec wrote it, how far that is from what it was told."""
        if "average" not in self.channels.codecs:
            return content
        assert told is not None
        draw = self.channels.draw("average", str(self.silo), (call.round, call.use), client)
        return self.vectors.sent(told) + self.channels.read_vector(draw, content, self.vectors.size, self.agreed.dtype)

    def state(self) -> dict[str, Any]:
        return {"channels": self.channels.snapshot(), "moments": None if self.moments is None else self.moments.flat}

    def load(self, state: Mapping[str, Any]) -> None:
        self.channels.restore(state["channels"])
        flat = state["moments"]
        self.moments = None if flat is None else Moments.of(self.vectors.optimiser, flat)


def told_to_each(
    channels: Channels, exchange: str, name: str, clients: Sequence[int], content: Tensor, whole: Tensor
) -> dict[int, Tensor]:
    """By client the message, or the whole value where it missed what the message builds on."""
    missed = channels.missed(exchange, name, np.array(clients))
    late = [False] * len(clients) if missed is None else missed.tolist()
    return {k: whole if one else content for k, one in zip(clients, late, strict=True)}


def mean_of(values: Sequence[Tensor], counts: Sequence[int]) -> Tensor:
    """What a server makes of groups that count so much each."""
    total = sum(counts)
    return torch.stack([one * (count / total) for one, count in zip(values, counts, strict=True)]).sum(0)
