"""Parties as processes against the same parties in memory, an echo over the same streams, and the computing alone."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from torch import Tensor

from benchmarks.runtime.noted import NotedLine, Said
from benchmarks.runtime.processes import Processes
from benchmarks.runtime.settings import SETTINGS, Setting
from crosshatch.local.moments import Moments
from crosshatch.parties.holdings.steps import Steps, Work
from crosshatch.parties.line import Name
from crosshatch.parties.roles.client_role import ClientRole
from crosshatch.simulator.allocator import keep_freed_memory
from crosshatch.testing.parties.turns import TurnLine, Turns

HEAD = "| setting | against | processes, ms per round | it, ms | ratio | aim |\n|---|---|---:|---:|---:|---:|"
_AGAINST = {"logistic": ("in memory", 1.6), "4 MB blocks": ("echo", 1.3), "CNN": ("computing", 1.3)}


@dataclass
class TimedSteps:
    """A client's steps, and the seconds of processor time they took."""

    steps: Steps
    seconds: float = 0.0

    def embed(self, block: Tensor, x: Tensor, seed: tuple[int, int, int]) -> Tensor:
        """One pass."""
        began = time.thread_time()
        found = self.steps.embed(block, x, seed)
        self.seconds += time.thread_time() - began
        return found

    def descend(self, work: Work) -> tuple[Tensor, Moments | None]:
        """All steps."""
        began = time.thread_time()
        found = self.steps.descend(work)
        self.seconds += time.thread_time() - began
        return found


class InMemory:
    """The parties of a setting in turn, in this process."""

    def __init__(self, setting: Setting, data: Path | None) -> None:
        self.setting, self.parties, self.turns = setting, setting.parties(data), Turns()
        self.steps: list[TimedSteps] = []
        for name, party in self.parties.items():
            party.join(TurnLine(name, self.turns))
            if isinstance(party.role, ClientRole):
                self.steps.append(TimedSteps(party.role.client.steps))
                party.role.client.steps = self.steps[-1]

    def run_round(self) -> None:
        """Everybody's."""
        self.turns.run({name: party.run_round for name, party in self.parties.items()})

    def note(self) -> dict[Name, list[Said]]:
        """What everybody says in a round."""
        noted = {}
        for name, party in self.parties.items():
            noted[name] = NotedLine(party.role.post.line)
            party.join(noted[name])
        self.run_round()
        for name, party in self.parties.items():
            party.join(noted[name].line)
        return {name: one.said for name, one in noted.items()}

    def turn(self, *, computing: bool) -> float:
        """Seconds of processor time of the rounds of a turn, or of what clients compute in them."""
        began, computed = time.process_time(), sum(one.seconds for one in self.steps)
        for _ in range(self.setting.rounds):
            self.run_round()
        if computing:
            return sum(one.seconds for one in self.steps) - computed
        return time.process_time() - began


def race(setting: Setting, data: Path | None, *, turns: int) -> str:
    """A line of the table."""
    against, aim = _AGAINST[setting.name]
    memory = InMemory(setting, data)
    said = memory.note()
    with TemporaryDirectory() as folder:
        ours = Processes(setting, said, Path(folder) / "ours", turns=turns + 1, data=data)
        echo = None
        if against == "echo":
            echo = Processes(setting, said, Path(folder) / "echo", turns=turns + 1, data=data, echo=True)
        try:
            pairs = []
            for turn in range(turns + 1):
                mine = ours.turn()
                theirs = memory.turn(computing=against == "computing") if echo is None else echo.turn()
                if turn:  # first calls allocate
                    pairs.append((mine, theirs))
        finally:
            ours.close()
            if echo is not None:
                echo.close()
    mine, theirs = (1000 * statistics.median(column) / setting.rounds for column in zip(*pairs, strict=True))
    ratio = statistics.median(one / other for one, other in pairs)
    return f"| {setting.name} | {against} | {mine:.1f} | {theirs:.1f} | {ratio:.2f} | {aim} |"


def table(names: Sequence[str], data: Path | None, *, turns: int) -> str:
    """The races of these settings, printed line by line as they come; without data those on images are left out."""
    torch.set_num_threads(1)
    keep_freed_memory()
    lines = [HEAD]
    print(HEAD, flush=True)
    for name in names:
        if name != "CNN" or data is not None:
            lines.append(race(SETTINGS[name], data, turns=turns))
            print(lines[-1], flush=True)
    return "\n".join(lines)
