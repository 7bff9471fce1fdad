"""The folder that `crosshatch reproduce` writes into, and what is kept there beside runs and results."""

import ast
import hashlib
import json
import shutil
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from crosshatch.errors import RunError
from crosshatch.report.runs import Run, read_run
from crosshatch.reproduce.running.keys import LENGTH
from crosshatch.reproduce.running.planned_runs import PlannedRun
from crosshatch.runs.files import write_whole, writing
from crosshatch.runs.one_writer import LOCK

TITLE = "The papers, reproduced"
"""Of the page over all recipes."""


@dataclass(frozen=True)
class Folder:
    """`runs/` has run directories, `seconds.json` their processor seconds, `began.json` by which rules they began."""

    path: Path
    _read_before: dict[str, Run] = field(default_factory=dict, repr=False)

    def require_own(self) -> None:
        """Refuse a folder with files of somebody else; inside `one_writer`."""
        others = (
            sorted(entry.name for entry in self.path.iterdir() if entry.name not in (LOCK, "runs"))
            if self.path.is_dir()
            else []
        )
        index = self.path / "index.html"
        page = index.read_text(encoding="utf-8", errors="replace") if index.is_file() else ""
        ours = (self.path / "began.json").is_file() or TITLE in page
        if others and not ours:
            raise RunError(f"the output folder {self.path} has files of others ({others[0]}): choose another --out")

    def find(self, planned: PlannedRun) -> Run | None:
        """The finished run of a plan: one that diverged is finished, one that broke down is not. Read once."""
        place = self.path / "runs" / planned.folder
        if planned.folder not in self._read_before and (place / "summary.json").is_file():
            self._read_before[planned.folder] = read_run(place)
        return self._read_before.get(planned.folder)

    def remove(self, planned: PlannedRun) -> None:
        """A finished run, to be trained again."""
        self._read_before.pop(planned.folder, None)
        shutil.rmtree(self.path / "runs" / planned.folder, ignore_errors=True)

    @cached_property
    def seconds(self) -> dict[str, float]:
        """Processor seconds by run; grows with `spend`."""
        return {str(name): float(value) for name, value in self._read("seconds.json").items()}

    def spend(self, name: str, seconds: float) -> None:
        """A job of a run took so long; a run that was stopped before has more than one."""
        self.seconds[name] = round(self.seconds.get(name, 0.0) + seconds, 3)
        self._write("seconds.json", self.seconds)

    def begin(self, sets: Iterable[str], commit: str, rules: str) -> None:
        """Before the first run of each set: the rules that the recipes which read it will be judged by."""
        began = self._read("began.json")
        new = {name: {"commit": commit, "rules": rules} for name in sets if name not in began}
        if new:
            self._write("began.json", began | new)

    def began(self, sets: Iterable[str]) -> list[dict[str, str]]:
        """Of each set that was ever run, all under whichever recipe came first."""
        began = self._read("began.json")
        return [began[name] for name in sets if name in began]

    def _read(self, name: str) -> dict[str, Any]:
        path = self.path / name
        found = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
        assert isinstance(found, dict)
        return found

    def _write(self, name: str, content: dict[str, Any]) -> None:
        with writing(self.path):
            self.path.mkdir(parents=True, exist_ok=True)
            write_whole(self.path / name, (json.dumps(content, indent=2, sort_keys=True) + "\n").encode())


def rules_digest() -> str:
    """Of everything that decides a verdict: the recipes, the rules, how values are chosen, the papers' numbers."""
    home = Path(__file__).parents[1]
    files = [
        home / "measured.py",
        home / "papers.toml",
        home / "running" / "choose_values.py",
        home / "running" / "look.py",
    ]
    files += [path for room in ("recipes", "judging") for path in (home / room).rglob("*.py")]
    found = hashlib.sha256()
    for path in sorted(files):
        text = path.read_text(encoding="utf-8")
        found.update(f"{path.relative_to(home).as_posix()}\n{_said(text) if path.suffix == '.py' else text}".encode())
    return found.hexdigest()[:LENGTH]


def _said(text: str) -> str:
    """What code does: without comments, docstrings and layout."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node) is not None:
            del node.body[0]
    return ast.dump(tree)
