"""The race against momentum and Adam keeps its rule: validation rows of some seeds choose, others' test rows count."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

import benchmarks.abcd_rivals as rivals
from benchmarks.abcd_rivals import ADAM, CHOOSING, COUNTING, MOMENTUM, OURS, PLAIN, RACES, Book, Race, Rival, table

BEST = {PLAIN: 1, MOMENTUM: -1, ADAM: 1, OURS: -2}
"""Half decades; Adam's lies beyond the five that are tried first."""
ROUNDS = {PLAIN: 80, MOMENTUM: 40, ADAM: 20, OURS: 10}
"""To the target with them, and ten more for every half decade beside; the test rows take five more for every seed."""


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Rival, float, int, str]]:
    """What was run: every run reaches 1 in a straight line, and begins to fall then."""
    seen: list[tuple[Rival, float, int, str]] = []

    def run(_: Any, __: Any, rival: Rival, size: float, seed: int, rows: str, stop: float) -> list[float]:
        seen.append((rival, size, seed, rows))
        away = abs(round(2 * math.log10(size)) - BEST[rival])
        needed = ROUNDS[rival] + 10 * away + (5 * (seed - COUNTING[0]) if rows == "test" else 0)
        course = [1 - abs(number / needed - 1) for number in range(1, rivals.LIMIT + 1)]
        arrived = next((number for number, value in enumerate(course, 1) if value >= stop), len(course))
        return course[:arrived]

    monkeypatch.setattr(rivals, "_run", run)
    monkeypatch.setattr(rivals, "hold_out", lambda *_, **__: None)
    monkeypatch.setitem(rivals.TARGETS, "credit-4", 1.0)
    return seen


def test_validation_rows_choose_and_test_rows_count(tmp_path: Path, asked: list[Any]) -> None:
    race = Race(Book(tmp_path / "runs", None), RACES["credit-4"])
    assert {rival: half_decade for rival, (half_decade, _) in race.choices.items()} == BEST
    assert race.better == ADAM
    assert {rows for _, _, _, rows in asked} == {"validation"}
    assert {seed for _, _, seed, _ in asked} == set(CHOOSING)
    assert race.rounds(OURS) == [10, 15, 20]
    assert {(seed, rows) for _, _, seed, rows in asked} == {(seed, "validation") for seed in CHOOSING} | {
        (seed, "test") for seed in COUNTING
    }
    line = list(table([race]))[-1]
    assert line == (
        "| credit-4, auc 1 | 80, 85, 90 (at 3) | 40, 45, 50 (at 0.3) | 20, 25, 30 (at 3) | 10, 15, 20 (at 0.1) | "
        "0.18 | 0.60, Adam |"
    )


def test_a_run_in_the_file_is_not_made_again(tmp_path: Path, asked: list[Any]) -> None:
    first = list(table([Race(Book(tmp_path / "runs", None), RACES["credit-4"])]))
    made = len(asked)
    assert list(table([Race(Book(tmp_path / "runs", None), RACES["credit-4"])])) == first
    assert len(asked) == made
