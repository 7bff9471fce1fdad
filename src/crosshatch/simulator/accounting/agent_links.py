"""Messages between agents, and between agents and the server: counted by the wire format's sizes, and timed.

Every agent has a clock, and so has every token: a visit begins when the token is there and the agent is free, and the
server answers when the last token has arrived.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt
import torch

from crosshatch import wire
from crosshatch.meter import Meter
from crosshatch.network import Direction, Network

Ids = npt.NDArray[np.int64]
Seconds = npt.NDArray[np.float64]
Numbers = Sequence[int]
_Table = tuple[int, list[float]]  # the size of a message, and its seconds on each agent's link


@dataclass
class AgentLinks:
    """Links of agents on a graph; all messages carry `shape` numbers: scores of all samples."""

    agents: Sequence[str]
    network: Network
    dtype: torch.dtype
    meter: Meter
    shape: tuple[int, int]  # samples, scores per sample

    _known: dict[tuple[str, Direction, str, int, int], _Table] = field(default_factory=dict, repr=False)

    def send(
        self, senders: Numbers, receivers: Numbers, exchange: str, *, round: int, steps: Numbers, mutual: bool = False
    ) -> list[float]:
        """One message from each sender to its receiver; how long each takes. `steps` tells messages of a round apart.

        A `mutual` exchange, both ways at once, is timed as one.
        """
        assert len(senders) == len(receivers)
        return self._send("agent-agent", "across", "across" if mutual else "up", senders, exchange, round, steps)

    def ask_server(self, senders: Numbers, ready: Seconds, receivers: Numbers, exchange: str, *, round: int) -> Seconds:
        """Each sender sends the server one message at its time `ready`; when the answer is at each receiver.

        The server answers when the last message has arrived.
        """
        up = self._send("agent-server", "up", "up", senders, exchange, round, range(len(senders)))
        down = self._send("agent-server", "down", "down", receivers, exchange, round, range(len(receivers)))
        arrivals: Seconds = (ready + up).max() + np.array(down)
        return arrivals

    @cached_property
    def step_seconds(self) -> Seconds:
        """Seconds (agents,) of a local step."""
        return np.array([self.network.local_step(name, None)[0] for name in self.agents])

    def _send(
        self, link: str, label: Direction, direction: Direction, agents: Numbers, exchange: str, round: int,
        steps: Numbers,
    ) -> list[float]:  # fmt: skip
        """Count one message per agent over its own link; how long each takes."""
        seconds, total, long = [], 0, wire.as_long(round)
        for agent, step in zip(agents, steps, strict=True):
            key = (link, direction, exchange, long, wire.as_long(step))
            if key not in self._known:
                length = wire.size(long, exchange, ((self.dtype, self.shape),), use=wire.as_long(step))
                one = np.array([length])
                each = [float(self.network.transfer(link, direction, one, name, None)[0]) for name in self.agents]
                self._known[key] = length, each
            size, taken = self._known[key]
            seconds.append(taken[agent])
            total += size
        if seconds:
            self.meter.count(f"{link} {label}", exchange, messages=len(seconds), size=total)
        return seconds
