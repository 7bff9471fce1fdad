"""Messages between agents, and between agents and the server: counted by the wire format's sizes, and timed.

Every agent has a clock, and so has every token: a visit begins when the token is there and the agent is free, and the
server answers when the last token has arrived.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import torch

from crosshatch import wire
from crosshatch.meter import Meter
from crosshatch.network import Direction, Network
from crosshatch.protocol.message_contents import Message, Specs

Ids = npt.NDArray[np.int64]
Seconds = npt.NDArray[np.float64]
Numbers = Sequence[int]
_LONGER = (128, 256, 2**16, 2**32)  # from these numbers on a header's integer takes more bytes


@dataclass
class AgentLinks:
    """Links of agents on a graph; all messages carry `shape` numbers: scores of all samples.

    `log`, if given, is called with every message (for tests).
    """

    agents: Sequence[str]
    network: Network
    dtype: torch.dtype
    meter: Meter
    shape: tuple[int, int]  # samples, scores a sample
    log: Callable[[Message], None] | None = None

    _known: dict[tuple[Direction, int, str, int, int], tuple[int, float]] = field(default_factory=dict, repr=False)
    _steps: dict[int, float] = field(default_factory=dict, repr=False)

    def send(
        self, senders: Numbers, receivers: Numbers, exchange: str, *, round: int, steps: Numbers, mutual: bool = False
    ) -> list[float]:
        """One message from each sender to its receiver; how long each takes. `steps` tells messages of a round apart.

        A `mutual` exchange, both ways at once, is timed as one.
        """
        seconds = self._send("agent-agent", "across", "across" if mutual else "up", senders, exchange, round, steps)
        if self.log:
            names = [(self.agents[a], self.agents[b]) for a, b in zip(senders, receivers, strict=True)]
            self._tell(names, exchange, round, steps)
        return seconds

    def to_server(self, senders: Numbers, exchange: str, *, round: int, steps: Numbers) -> list[float]:
        """One message from each agent to the server."""
        if self.log:
            self._tell([(self.agents[a], "server") for a in senders], exchange, round, steps)
        return self._send("agent-server", "up", "up", senders, exchange, round, steps)

    def from_server(self, receivers: Numbers, exchange: str, *, round: int, steps: Numbers) -> list[float]:
        """One message from the server to each agent."""
        if self.log:
            self._tell([("server", self.agents[a]) for a in receivers], exchange, round, steps)
        return self._send("agent-server", "down", "down", receivers, exchange, round, steps)

    def step_seconds(self, agent: int) -> float:
        """Seconds of a local step."""
        if agent not in self._steps:
            self._steps[agent] = float(self.network.local_step(self.agents[agent], None)[0])
        return self._steps[agent]

    def _send(
        self, link: str, label: Direction, direction: Direction, agents: Numbers, exchange: str, round: int,
        steps: Numbers,
    ) -> list[float]:  # fmt: skip
        seconds, total, long = [], 0, _as_long(round)
        for agent, step in zip(agents, steps, strict=True):
            key = (direction, agent, exchange, long, _as_long(step))
            if key not in self._known:
                self._known[key] = self._find(link, *key)
            size, taken = self._known[key]
            seconds.append(taken)
            total += size
        if seconds:
            self.meter.count(f"{link} {label}", exchange, messages=len(seconds), size=total)
        return seconds

    def _find(
        self, link: str, direction: Direction, agent: int, exchange: str, round: int, step: int
    ) -> tuple[int, float]:
        """Size and seconds of a message."""
        content: Specs = ((self.dtype, self.shape),)
        size = wire.size(round, exchange, content, step=step)
        seconds = self.network.transfer(link, direction, np.array([size]), self.agents[agent], None)
        return size, float(seconds[0])

    def _tell(self, ends: list[tuple[str, str]], exchange: str, round: int, steps: Numbers) -> None:
        assert self.log is not None
        for (sender, receiver), step in zip(ends, steps, strict=True):
            self.log((sender, receiver, round, exchange, step, ((self.dtype, self.shape),)))


def _as_long(number: int) -> int:
    """A number whose encoding is as long, the same for most: sizes are then found once, not in every round."""
    return 0 if number < _LONGER[0] else _LONGER[bisect(_LONGER, number) - 1]
