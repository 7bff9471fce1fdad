"""A watcher that keeps another tool's account of a run complete, whatever happened to the run in between."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from crosshatch.errors import RunError
from crosshatch.runs.config import config_text
from crosshatch.runs.config_names import algorithm_name
from crosshatch.runs.tables.overrides import flat_tables
from crosshatch.runs.watcher import Outcome, Watcher

if TYPE_CHECKING:  # needs torch, which takes seconds to import
    from crosshatch.runs.prepare import Prepared

FOLDER = "tracking"
"""Of a run directory: what trackers keep there, a folder each."""


@dataclass(frozen=True)
class Account:
    """What is said of a run before its first evaluation: the config as text and by key, and a few words."""

    name: str
    config: str
    settings: Mapping[str, str | float]
    tags: Mapping[str, str]
    metrics: tuple[str, ...]


class TrackerStore(Protocol):
    """Another tool's account of one run, opened where an earlier process may have left it. A RunError: it is no use."""

    @property
    def written(self) -> Mapping[str, int]:
        """What was found there: by name of a figure, the last round of which there is one."""
        ...

    def write(self, round: int, figures: Mapping[str, float]) -> None: ...

    def close(self, outcome: Outcome) -> None: ...


class Tracker(Watcher):
    """Passes evaluations on to a store, none of them twice.

    The store is opened with the first evaluation, for only then there is a run directory; then, and with every further
    one, it gets what it does not have yet of metrics.jsonl. So it ends up complete even where a run was killed before
    everything had been passed on, or began to be tracked later. A store that fails before the first round ends the run;
    later on it is left alone until the run has ended.
    """

    def __init__(
        self, name: str, open_store: Callable[[Path, Account], TrackerStore], complain: Callable[[str], None]
    ) -> None:
        self._name = name
        self._open_store = open_store
        self._complain = complain
        self._store: TrackerStore | None = None
        self._written: dict[str, int] = {}
        self._failed = False

    def begin(self, prepared: Prepared, path: Path) -> None:
        """Look at the store at once where the run goes on."""
        self._path, self._account = path, _account(prepared, path)
        if prepared.simulator.round > 0:
            self._open()

    def evaluated(self, row: Mapping[str, Any]) -> None:
        if self._store is None:
            self._open()
        elif not self._failed:
            self._try(lambda: self._write([row]))

    def ended(self, outcome: Outcome) -> None:
        """Say how, after what was not passed on before."""
        store = self._store
        if store is None:
            return

        def close() -> None:
            self._write(_rows(self._path))
            store.close(outcome)

        self._try(close)

    def _open(self) -> None:
        self._store = self._open_store(self._path / FOLDER / self._name, self._account)
        self._written = dict(self._store.written)
        self._write(_rows(self._path))

    def _write(self, rows: Iterable[Mapping[str, Any]]) -> None:
        assert self._store is not None
        for row in rows:
            round = row["round"]
            figures = {name: value for name, value in row.items() if name != "round"}
            new = {name: value for name, value in figures.items() if self._written.get(name, -1) < round}
            if new:
                self._store.write(round, new)
                self._written |= dict.fromkeys(new, round)

    def _try(self, action: Callable[[], None]) -> None:
        """A run is worth more than its tracking."""
        try:
            action()
        except RunError as error:
            if not self._failed:
                self._complain(f"{error}; the run goes on without")
            self._failed = True


def _rows(path: Path) -> list[dict[str, Any]]:
    file = path / "metrics.jsonl"  # not there any more where the run was given up
    return [json.loads(line) for line in file.read_bytes().splitlines()] if file.is_file() else []


def _account(prepared: Prepared, path: Path) -> Account:
    config = prepared.config
    text = config_text(config)
    tags = {
        "algorithm": algorithm_name(config.algorithm),
        "seed": str(config.run.seed),
        "directory": path.resolve().name,
    }
    metrics = ("train_loss", *config.evaluate.names)
    return Account(config.name, text, flat_settings(tomllib.loads(text)), tags, metrics)


def flat_settings(tables: Mapping[str, Any]) -> dict[str, str | float]:
    """Every setting by the key with which `--set` changes it; lists and truths as text.

    >>> flat_settings({"run": {"rounds": 5, "track": ["mlflow"]}, "silos": [{"name": "a"}]})
    {'run.rounds': 5, 'run.track': '["mlflow"]', 'silos.0.name': 'a'}
    """
    found = flat_tables(tables, entries=True).items()
    return {key: one if type(one) in (str, int, float) else json.dumps(one, default=str) for key, one in found}
