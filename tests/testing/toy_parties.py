"""Parties small enough to see through: clients add what their hub says to a number and tell it, some rest at times."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from crosshatch.parties.line import Line, Name
from crosshatch.seeds import generator

CLIENTS = 3


@dataclass
class Toy:
    """A hub (number None) or a client; `memory` is a client's own, as error feedback would keep it."""

    number: int | None
    round: int = 0
    total: Tensor = field(default_factory=lambda: torch.zeros(3, dtype=torch.float64))
    memory: Tensor = field(default_factory=lambda: torch.zeros(3, dtype=torch.float64))
    forgets: bool = False  # its state lacks the memory
    one_way: bool = False  # clients are told nothing, so nothing but room for messages holds them back
    follows: Name | None = None  # a client without a memory, which begins where its hub is
    line: Line | None = None
    ended: bool = False

    def join(self, line: Line) -> None:
        self.line = line

    def run_round(self) -> None:
        """Everybody knows who is at work."""
        assert self.line is not None
        at_work = [k for k in range(CLIENTS) if generator(5, "work", self.round, k).random() < 0.5]
        up, down = (self.round, "up", 0), (self.round, "down", 0)
        if self.number is None:
            for k in at_work if not self.one_way else ():
                self.line.send(f"client-{k}", down, self.total.numpy().tobytes())
            got = [_read(self.line.recv(f"client-{k}", up)) for k in at_work]
            self.total = sum(got, self.total)
        elif self.number in at_work:
            told = torch.zeros(3) if self.one_way else _read(self.line.recv("hub", down))
            memory = 0.5 * self.memory + torch.sin(told + self.number + self.round)
            self.memory = self.memory if self.follows else memory
            self.line.send("hub", up, memory.numpy().tobytes())
        self.round += 1

    def state(self) -> dict[str, Any]:
        kept = {} if self.forgets else {"memory": self.memory}
        return {"round": self.round, "total": self.total, **kept}

    def load(self, state: Any) -> None:
        self.round, self.total = state["round"], state["total"]
        self.memory = state.get("memory", self.memory)

    def catch_up(self, round: int, *, over: bool) -> None:
        assert self.follows is not None
        assert not over
        assert round > self.round
        self.round = round


def toys(*, forgets: bool = False, one_way: bool = False, follow: bool = False) -> dict[Name, Toy]:
    """A hub and its clients."""
    hub = "hub" if follow else None
    clients = {f"client-{k}": Toy(k, forgets=forgets, one_way=one_way, follows=hub) for k in range(CLIENTS)}
    return {"hub": Toy(None, one_way=one_way)} | clients


PEERS = {"hub": [f"client-{k}" for k in range(CLIENTS)]} | {f"client-{k}": ["hub"] for k in range(CLIENTS)}


def _read(message: bytes) -> Tensor:
    return torch.frombuffer(bytearray(message), dtype=torch.float64).clone()
