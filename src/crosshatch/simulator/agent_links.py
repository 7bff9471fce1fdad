"""Messages between agents, and between agents and the server: counted by the wire format's sizes, and timed.

Every agent has a clock, and so has every token: a visit begins when the token is there and the agent is free, and the
server answers when the last token has arrived.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import torch

from crosshatch import wire
from crosshatch.meter import Meter
from crosshatch.network import Direction, Network
from crosshatch.simulator.traffic import Message, Specs

Ids = npt.NDArray[np.int64]
Seconds = npt.NDArray[np.float64]
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

    _seconds: dict[tuple[str, Direction, int, int], float] = field(default_factory=dict, repr=False)
    _steps: dict[int, float] = field(default_factory=dict, repr=False)

    def send(
        self, senders: Ids, receivers: Ids, exchange: str, *, round: int, steps: Ids, mutual: bool = False
    ) -> Seconds:
        """One message from each sender to its receiver; how long each takes. `steps` tells messages of a round apart.

        A `mutual` exchange, both ways at once, is timed as one.
        """
        seconds = self._send("agent-agent", "across", "across" if mutual else "up", senders, exchange, round, steps)
        if self.log:
            names = [(self.agents[a], self.agents[b]) for a, b in zip(senders, receivers, strict=True)]
            self._tell(names, exchange, round, steps)
        return seconds

    def to_server(self, senders: Ids, exchange: str, *, round: int, steps: Ids) -> Seconds:
        """One message from each agent to the server."""
        if self.log:
            self._tell([(self.agents[a], "server") for a in senders], exchange, round, steps)
        return self._send("agent-server", "up", "up", senders, exchange, round, steps)

    def from_server(self, receivers: Ids, exchange: str, *, round: int, steps: Ids) -> Seconds:
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
        self, link: str, label: Direction, direction: Direction, agents: Ids, exchange: str, round: int, steps: Ids
    ) -> Seconds:
        content: Specs = ((self.dtype, self.shape),)
        seconds = np.empty(len(agents))
        total = 0
        for i, (agent, step) in enumerate(zip(agents.tolist(), steps.tolist(), strict=True)):
            size = wire.size(_as_long(round), exchange, content, step=_as_long(step))
            total += size
            key = (link, direction, agent, size)
            if key not in self._seconds:
                sent = np.array([size])
                self._seconds[key] = float(self.network.transfer(link, direction, sent, self.agents[agent], None)[0])
            seconds[i] = self._seconds[key]
        if len(agents):
            self.meter.count(f"{link} {label}", exchange, messages=len(agents), size=total)
        return seconds

    def _tell(self, ends: list[tuple[str, str]], exchange: str, round: int, steps: Ids) -> None:
        assert self.log is not None
        for (sender, receiver), step in zip(ends, steps.tolist(), strict=True):
            self.log((sender, receiver, round, exchange, step, ((self.dtype, self.shape),)))


def _as_long(number: int) -> int:
    """A number whose encoding is as long, the same for most: sizes are then found once, not in every round."""
    return max((limit for limit in _LONGER if number >= limit), default=0)
