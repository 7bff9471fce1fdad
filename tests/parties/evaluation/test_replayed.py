"""Evaluations of parties that crash: the same line in the same place, the same bytes, whatever went wrong."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
import torch

from crosshatch.meter import Meter
from crosshatch.parties.evaluation.text import Found, Scored, Verdict
from crosshatch.parties.evaluation.with_evaluation import EvaluationPlan
from crosshatch.parties.line import Key, Line, Name
from crosshatch.parties.party import Party
from crosshatch.parties.seeing_all import model_of, total
from crosshatch.testing.check_restarts import restart_cases
from crosshatch.testing.parties.engine import PartyByParty
from crosshatch.testing.run_disturbed import run_disturbed
from tests.support.held_out_rows import with_held_out

NAMES = [name for name in restart_cases() if name != "JFL"]


class File(dict[int, list[float]]):
    """What is written down outside of the party; a line may be written again, with the same numbers."""

    def __deepcopy__(self, memo: object) -> File:
        return self

    def write(self, done: int, line: list[float]) -> None:
        assert self.setdefault(done, line) == line, f"another line for round {done}"


@dataclass
class Writer:
    """A judge whose best round is that with the lowest objective, by what it remembers."""

    file: File
    last: int | None = None  # it ends the run after so many rounds
    lines: dict[int, list[float]] = field(default_factory=dict)

    def see(self, found: Found, done: int) -> Verdict:
        self.lines[done] = [found.objective, *found.held_out.scores.reshape(-1).tolist()]
        self.file.write(done, [float(len(self.lines)), *self.lines[done]])
        best = min(self.lines, key=lambda one: self.lines[one][0]) == done
        return (Verdict.BEST if best else Verdict.GO_ON) | (Verdict.END if done == self.last else Verdict.GO_ON)

    def close(self, scored: Scored, done: int) -> None:
        self.file.write(-done, scored.scores.reshape(-1).tolist())

    def state(self) -> dict[str, Any]:
        return {"lines": dict(self.lines)}

    def load(self, state: Mapping[str, Any]) -> None:
        self.lines = dict(state["lines"])


@dataclass(frozen=True)
class Noting:
    """A line that notes who talks to whom."""

    me: Name
    line: Line
    pairs: set[frozenset[Name]]

    def send(self, to: Name, key: Key, message: bytes) -> None:
        self.pairs.add(frozenset((self.me, to)))
        self.line.send(to, key, message)

    def recv(self, sender: Name, key: Key) -> bytes:
        return self.line.recv(sender, key)


def engine_of(name: str, file: File, last: int | None = None) -> tuple[PartyByParty, int]:
    case, rounds = restart_cases()[name]
    data = with_held_out(case.data)
    plan = EvaluationPlan.of(data, 3, rounds, Writer(file, last))
    return PartyByParty(
        data, case.task, case.algorithm, seed=case.seed, codecs=case.codecs, evaluation=plan
    ), rounds  # fmt: skip


def evaluating(parties: Mapping[Name, Party]) -> Meter:
    return total(party.evaluation.fed.post.meter for party in parties.values() if party.evaluation is not None)


@pytest.mark.parametrize(("name", "last"), [*((name, None) for name in NAMES), *((name, 6) for name in NAMES[:3])])
def test_a_replay_writes_the_same_lines(name: str, last: int | None) -> None:
    lines, pairs = File(), set[frozenset[Name]]()
    engine, rounds = engine_of(name, lines, last)
    for party in engine.parties.values():
        party.join(Noting(party.name, party.role.post.line, pairs))
    for _ in range(last or rounds):
        engine.run_round()
    peers = {one: sorted(min(pair - {one}) for pair in pairs if one in pair) for one in engine.parties}
    crashes = 0
    for seed in range(6):
        again = File()
        fresh, _ = engine_of(name, again, last)
        end = run_disturbed(fresh.parties, peers, rounds=rounds, seed=seed)
        crashes += end.counted.crashes
        assert again == lines
        assert {party.round for party in end.parties.values()} == {last or rounds}
        assert all(map(torch.equal, model_of(end.parties), engine.weights))
        assert total(party.meter for party in end.parties.values()) == engine.meter
        assert evaluating(end.parties) == evaluating(engine.parties)
    assert crashes > 0
