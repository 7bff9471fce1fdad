"""Parties as processes against the same parties in memory, their messages alone, and the computing alone."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from torch import Tensor

from benchmarks.runtime.noted import NotedLine, Said
from benchmarks.runtime.party import KINDS
from benchmarks.runtime.processes import Processes
from benchmarks.runtime.settings import SETTINGS, Setting
from crosshatch.local.moments import Moments
from crosshatch.parties.holdings.steps import Steps, Work
from crosshatch.parties.line import Name
from crosshatch.parties.roles.client_role import ClientRole
from crosshatch.simulator.allocator import keep_freed_memory
from crosshatch.testing.parties.turns import TurnLine, Turns

HEAD = "| setting | against | processes, ms per round | it, ms | ratio | aim |\n|---|---|---:|---:|---:|---:|"
_TOGETHER = " + "
_BESIDE: dict[str, float | None] = {f"in memory{_TOGETHER}bare gRPC": None, f"in memory{_TOGETHER}echo": None}
_AGAINST: dict[str, dict[str, float | None]] = {  # what each setting is raced against, with the aim if there is one
    "logistic": {"in memory": 1.6, **_BESIDE},
    "4 MB blocks": {"echo": 1.3, **_BESIDE},
    "CNN": {"computing": 1.3},
}


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


def race(setting: Setting, data: Path | None, *, turns: int) -> list[str]:
    """Lines of the table. Contestants take turns; the first turn of each, in which memory is taken, does not count."""
    against, memory = _AGAINST[setting.name], InMemory(setting, data)
    wanted = {part for name in against for part in name.split(_TOGETHER)}
    contestants: dict[str, Callable[[], float]] = {
        "in memory": partial(memory.turn, computing=False), "computing": partial(memory.turn, computing=True)
    }  # fmt: skip
    said, started = memory.note(), []
    with TemporaryDirectory() as folder:
        try:
            for kind in KINDS:
                if kind == "party" or kind in wanted:
                    started.append(Processes(setting, said, Path(folder) / kind, kind, turns=turns + 1, data=data))
                    contestants[kind] = started[-1].turn
            spent: dict[str, list[float]] = {kind: [] for kind in contestants if kind in {"party", *wanted}}
            for _ in range(turns + 1):
                for kind, seconds in spent.items():
                    seconds.append(1000 * contestants[kind]() / setting.rounds)
        finally:
            for processes in started:
                processes.close()
    return [_line(setting.name, name, aim, spent) for name, aim in against.items()]


def _line(setting: str, against: str, aim: float | None, spent: Mapping[str, list[float]]) -> str:
    ours = spent["party"][1:]
    theirs = [sum(turn) for turn in zip(*(spent[part][1:] for part in against.split(_TOGETHER)), strict=True)]
    ratio = statistics.median(one / other for one, other in zip(ours, theirs, strict=True))
    figures = f"{statistics.median(ours):.1f} | {statistics.median(theirs):.1f} | {ratio:.2f}"
    return f"| {setting} | {against} | {figures} | {aim or ''} |"


def table(names: Sequence[str], data: Path | None, *, turns: int) -> str:
    """The races of these settings, printed line by line as they come; without data those on images are left out."""
    torch.set_num_threads(1)
    keep_freed_memory()
    lines = [HEAD]
    print(HEAD, flush=True)
    for name in names:
        if name != "CNN" or data is not None:
            lines += race(SETTINGS[name], data, turns=turns)
            print("\n".join(lines[-len(_AGAINST[name]) :]), flush=True)
    return "\n".join(lines)
