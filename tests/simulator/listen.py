"""Listen to a simulator's messages, and encode them for real."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import Any

import torch

from crosshatch import wire
from crosshatch.exchanges import Algorithm
from crosshatch.simulator.simulator import Simulator
from tests.equivalence.federations import Case
from tests.simulator.message_log import Message, log_messages


@dataclass(frozen=True)
class Heard:
    """A finished run and everything that was sent during it."""

    simulator: Simulator
    messages: list[Message]

    @property
    def by_ends(self) -> Counter[tuple[str, str]]:
        """Messages from each party to each other."""
        return Counter((sender, receiver) for sender, receiver, *_ in self.messages)

    def shapes(self, sender: str, receiver: str, exchange: str, step: int = 0) -> list[tuple[tuple[int, ...], ...]]:
        """Shapes of the tensors in the messages of an exchange between two parties."""
        wanted = (sender, receiver, exchange, step)
        return [tuple(shape for _, shape in m[5]) for m in self.messages if (m[0], m[1], m[3], m[4]) == wanted]


def listen(case: Case, algorithm: Algorithm, *, rounds: int, **options: Any) -> Heard:
    """Run some rounds and keep every message."""
    simulator = case.prepare(algorithm, **options)
    messages = log_messages(simulator)
    for _ in range(rounds):
        simulator.run_round()
    return Heard(simulator, messages)


def kind_of_link(message: Message) -> str:
    """The link a message went over, from its ends alone; hub-hub without the direction."""
    sender, receiver = message[:2]
    if sender.startswith(f"{receiver}/"):
        return "client-hub up"
    if receiver.startswith(f"{sender}/"):
        return "client-hub down"
    if "#" in sender:  # branches are named silo#level.number
        return (
            "branch-hub up"
            if int(sender.split("#")[1].split(".")[0]) > int(receiver.split("#")[1][0])
            else "branch-hub down"
        )
    assert "/" not in sender + receiver
    assert sender != receiver
    return "hub-hub"


def really_encoded(messages: list[Message]) -> dict[str, dict[str, list[int]]]:
    """Bytes and messages by link and by exchange, found by encoding zeros of the messages' shapes."""
    links: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    exchanges: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for message in messages:
        _, _, round, exchange, step, specs = message
        tensors = tuple(torch.zeros(shape, dtype=kind) for kind, shape in specs)
        length = len(wire.encode("0badcafe", round, exchange, tensors, use=step))
        for entry in (links[kind_of_link(message)], exchanges[exchange]):
            entry[0] += length
            entry[1] += 1
    return {"links": dict(links), "exchanges": dict(exchanges)}


def metered(simulator: Simulator) -> dict[str, dict[str, list[int]]]:
    """What the meter says, the directions between hubs taken together."""
    links: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for name, (size, count) in simulator.meter.links.items():
        entry = links["hub-hub" if name.startswith("hub-hub") else name]
        entry[0] += size
        entry[1] += count
    return {"links": dict(links), "exchanges": dict(simulator.meter.exchanges)}
