"""Messages between agents, and between agents and the server: counted by the wire format's sizes, and timed.

Every agent has a clock, and so has every token: a visit begins when the token is there and the agent is free, and the
server answers when the last token has arrived.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from crosshatch import wire
from crosshatch.meter import Meter
from crosshatch.network import Direction, Network
from crosshatch.simulator.traffic import Message, Specs

Ids = npt.NDArray[np.int64]
Seconds = npt.NDArray[np.float64]


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

    def send(
        self, senders: Ids, receivers: Ids, exchange: str, *, round: int, steps: Ids, mutual: bool = False
    ) -> Seconds:
        """One message from each sender to its receiver; how long each takes. `steps` tells messages of a round apart.

        A `mutual` exchange, both ways at once, is timed as one.
        """
        names = [(self.agents[a], self.agents[b]) for a, b in zip(senders, receivers, strict=True)]
        return self._send("agent-agent", "across", "across" if mutual else "up", names, senders, exchange, round, steps)

    def to_server(self, senders: Ids, exchange: str, *, round: int, steps: Ids) -> Seconds:
        """One message from each agent to the server."""
        names = [(self.agents[a], "server") for a in senders]
        return self._send("agent-server", "up", "up", names, senders, exchange, round, steps)

    def from_server(self, receivers: Ids, exchange: str, *, round: int, steps: Ids) -> Seconds:
        """One message from the server to each agent."""
        names = [("server", self.agents[a]) for a in receivers]
        return self._send("agent-server", "down", "down", names, receivers, exchange, round, steps)

    def step_seconds(self, agent: int) -> float:
        """Seconds of a local step."""
        return float(self.network.local_step(self.agents[agent], None)[0])

    def _send(
        self,
        link: str,
        label: Direction,
        direction: Direction,
        names: list[tuple[str, str]],
        agents: Ids,
        exchange: str,
        round: int,
        steps: Ids,
    ) -> Seconds:
        content: Specs = ((self.dtype, self.shape),)
        sizes = [wire.size(round, exchange, content, step=int(step)) for step in steps]
        if sizes:
            self.meter.count(f"{link} {label}", exchange, messages=len(sizes), size=sum(sizes))
        if self.log:
            for (sender, receiver), step in zip(names, steps, strict=True):
                self.log((sender, receiver, round, exchange, int(step), content))
        seconds = [
            self.network.transfer(link, direction, np.array([size]), self.agents[agent], None)[0]
            for agent, size in zip(agents, sizes, strict=True)
        ]
        return np.array(seconds, dtype=np.float64)
