"""Files and configs with a mistake in them, and what a refusal must leave behind: nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

PEOPLE = """
[data]
path = "people.csv"
id = "id"
label = "y"
"""


# A file per silo instead of one for all.
FILES = """
[data]
id = "id"
label = "y"
[federation]
silos = [{ name = "a", path = "a.csv" }, { name = "b", path = "b.csv" }]
[algorithm]
name = "fedsgd"
[run]
rounds = 2
threads = 1
"""


Change = Callable[[list[list[str]]], None]


def write_table(path: Path, change: Change | None = None) -> None:
    """Forty people with three features and a label."""
    random = np.random.default_rng(5)
    values = random.normal(size=(40, 3))
    rows = [["id", "x1", "x2", "x3", "y"]]
    rows += [[str(i), *(f"{v:.4f}" for v in row), str(int(row.sum() > 0))] for i, row in enumerate(values)]
    if change is not None:
        change(rows)
    path.write_text("".join(",".join(row) + "\n" for row in rows))


def left_behind(home: Path) -> list[str]:
    return sorted(str(path.relative_to(home)) for path in home.rglob("*"))


def require_refusal(code: int, out: str, err: str, words: tuple[str, ...]) -> None:
    """Exit code 2 and a single line with all the words; no traceback."""
    assert code == 2, err
    assert err.startswith("error: ")
    assert err.count("\n") == 1, err
    assert "Traceback" not in err
    for word in words:
        assert word in err
    assert "finished" not in out
