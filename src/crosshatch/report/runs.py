"""Reading a run directory; nothing here needs torch."""

from __future__ import annotations

import json
import math
import tomllib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from crosshatch.data.identity.fingerprint import Fingerprint, read_fingerprint
from crosshatch.errors import RunError
from crosshatch.report.measures import COST_KEYS
from crosshatch.report.summary_file import Summary
from crosshatch.runs.tables.read_toml import read_toml
from crosshatch.task.directions import directions

if TYPE_CHECKING:
    import polars as pl

_NEEDED = ("round", "bytes", "sim_seconds")


@dataclass(frozen=True)
class Run:
    """One run directory. `metrics` has a dict an evaluation, in order; a value that was null is NaN.

    `summary` is the file as written, empty while the run is unfinished; `facts` is the same, typed. `seeds`: the
    runs of which this is the mean; none where it is a run itself. `fingerprint` says which data it was made on, where
    that is known. `smooth`: a target is reached when the mean of so many evaluations is.
    """

    name: str
    path: Path
    config: dict[str, Any]
    config_text: str
    metrics: tuple[dict[str, float], ...]
    summary: dict[str, Any]
    facts: Summary
    seeds: tuple[Run, ...] = ()
    fingerprint: Fingerprint | None = None
    smooth: int = 1

    @property
    def finished(self) -> bool:
        return bool(self.summary)

    @property
    def diverged(self) -> bool:
        return self.facts.diverged is not None

    @property
    def label(self) -> str:
        """The name, and a word about it where the run diverged: for legends and tables."""
        lost = sum(run.diverged for run in self.seeds)
        return add_remark(self.name, f"{lost} diverged" if lost else "diverged" if self.diverged else "")

    @property
    def algorithm(self) -> str:
        """Its name from the summary, else from the config, else empty."""
        return self.facts.algorithm or _text_at(self.config, "algorithm", "name")

    @property
    def directions(self) -> dict[str, bool]:
        """For every metric that is known whether higher is better, those of a user's own included."""
        evaluate = self.config.get("evaluate")
        own = evaluate.get("higher_is_better") if isinstance(evaluate, dict) else None
        given = own if isinstance(own, dict) else {}
        return directions({name: higher for name, higher in given.items() if isinstance(higher, bool)})

    @property
    def clients(self) -> int:
        """Clients of all silos and groups; 0 while that is unknown."""
        return sum(silo.clients for silo in self.facts.federation.silos)

    @property
    def table(self) -> pl.DataFrame:
        """One line per evaluation, with all that was counted and measured."""
        import polars as pl  # late: half a second that a command without tables need not wait

        return pl.DataFrame(self.metrics, infer_schema_length=None)

    @cached_property
    def metric_names(self) -> tuple[str, ...]:
        """Names of everything measured, in order of first appearance: `train_loss` and the test metrics."""
        return tuple(dict.fromkeys(key for row in self.metrics for key in row if key not in COST_KEYS))


def read_run(path: Path | str) -> Run:
    """The run in directory `path`; raises RunError when it is not one.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     line = '{"round": 10, "bytes": 8000, "sim_seconds": 31.0, "auc": 0.75}'
    ...     written = Path(folder, "metrics.jsonl").write_text(line)
    ...     run = read_run(folder)
    >>> run.metric_names, run.finished
    (('auc',), False)
    """
    path = Path(path)
    if not path.is_dir():
        raise RunError(f"{path} is not a directory: name a run directory, as written by `crosshatch train --out`")
    config_text = _read(path / "config.toml") if (path / "config.toml").exists() else ""
    try:
        config = read_toml(config_text)
    except tomllib.TOMLDecodeError as error:
        raise RunError(f"{path / 'config.toml'} is not TOML ({error}): restore it or run again") from None
    metrics = _read_metrics(path / "metrics.jsonl")
    summary, facts = read_summary(path / "summary.json")
    if facts.rounds is not None and facts.diverged is None and metrics[-1]["round"] < facts.rounds:
        raise RunError(
            f"{path / 'metrics.jsonl'} ends at round {metrics[-1]['round']:g}, and by its summary the run has "
            f"{facts.rounds}: lines were lost, put them back or run again"
        )
    name = facts.name or _text_at(config, "run", "name") or path.resolve().name
    smooth = section_of(config, "evaluate").get("smooth", 1)
    return Run(
        name, path, config, config_text, metrics, summary, facts, fingerprint=read_fingerprint(path),
        smooth=smooth if isinstance(smooth, int) and smooth > 0 else 1,
    )  # fmt: skip


def read_runs(paths: Sequence[Path | str]) -> list[Run]:
    """Several runs; those of equal names are told apart by their folders, by whole paths, or else by numbers."""
    runs = [_named(*named_path(path)) for path in paths]
    names = [run.name for run in runs]
    for name, times in Counter(names).items():
        if times > 1:
            same = [i for i, run in enumerate(runs) if run.name == name]
            for i, mark in zip(same, _marks([runs[i] for i in same]), strict=True):
                names[i] = f"{name} ({mark})"
    return [replace(run, name=name) for run, name in zip(runs, names, strict=True)]


def section_of(config: dict[str, Any], name: str) -> dict[str, Any]:
    """A section of a config; empty where there is none."""
    table = config.get(name)
    return table if isinstance(table, dict) else {}


def add_remark(name: str, remark: str) -> str:
    """
    >>> add_remark("tdcd", "diverged"), add_remark("tdcd (5 seeds)", "1 diverged"), add_remark("tdcd", "")
    ('tdcd (diverged)', 'tdcd (5 seeds, 1 diverged)', 'tdcd')
    """
    if not remark:
        return name
    return f"{name.removesuffix(')')}, {remark})" if name.endswith(" seeds)") else f"{name} ({remark})"


def directions_of(runs: Sequence[Run]) -> dict[str, bool]:
    """What is known of all runs together about which way is better."""
    return {name: higher for run in runs for name, higher in run.directions.items()}


def named_path(path: Path | str) -> tuple[str | None, Path]:
    """A run directory, and the name a user gave it as NAME=DIR."""
    name, sign, folder = str(path).partition("=")
    if sign and name and folder and not Path(path).is_dir():
        return name, Path(folder)
    return None, Path(path)


def _named(name: str | None, path: Path) -> Run:
    run = read_run(path)
    return run if name is None else replace(run, name=name, facts=msgspec.structs.replace(run.facts, name=name))


def _marks(runs: Sequence[Run]) -> list[str]:
    """What is different about these runs, in few words: settings, else their folders; numbers where all is the same."""
    paths = [run.path for run in runs]
    for marks in (_settings_apart(runs), [path.name for path in paths], [str(path) for path in paths]):
        if len(set(marks)) == len(paths):
            return marks
    return [str(number) for number in range(1, len(paths) + 1)]


def _settings_apart(runs: Sequence[Run]) -> list[str]:
    """The settings of [algorithm] and [model] in which runs differ, where these are few."""
    flat = [
        {key: value for name in ("algorithm", "model") for key, value in section_of(run.config, name).items()}
        for run in runs
    ]
    keys = [
        key for key in dict.fromkeys(key for one in flat for key in one) if len({str(o.get(key)) for o in flat}) > 1
    ]
    if not 0 < len(keys) <= 2:
        return []
    return [", ".join(f"{key}={one.get(key, '-')}" for key in keys) for one in flat]


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise RunError(f"{path} cannot be read ({error}): check the file and its permissions") from None


def _read_metrics(path: Path) -> tuple[dict[str, float], ...]:
    if not path.is_file():
        inside = sorted(str(found.parent) for found in path.parent.glob("*/metrics.jsonl"))
        some = f", for example {inside[0]}" if inside else ", as written by `crosshatch train`"
        raise RunError(f"{path.parent} has no metrics.jsonl: name a run directory{some}")
    try:
        # a kill in the middle of a write may also cut a character in two, so bad bytes must reach the check of the line
        lines = path.read_bytes().decode("utf-8", errors="replace").split("\n")
    except OSError as error:
        raise RunError(f"{path} cannot be read ({error}): check the file and its permissions") from None
    numbered = [(number, line) for number, line in enumerate(lines, 1) if line.strip()]
    rows = []
    for position, (number, line) in enumerate(numbered):
        try:
            value = json.loads(line)
        except ValueError:
            if position == len(numbered) - 1:
                break  # the run was stopped, or is just writing
            raise RunError(f"{path} line {number} is not JSON: remove the line or run again") from None
        rows.append(_row(value, f"{path} line {number}"))
    if not rows:
        raise RunError(f"{path} has no complete line: wait for the first evaluation of the run")
    return tuple(rows)


def _row(value: object, place: str) -> dict[str, float]:
    if not isinstance(value, dict):
        raise RunError(f"{place} is not a JSON object: remove the line or run again")
    row = {key: math.nan if item is None else item for key, item in value.items()
           if item is None or (isinstance(item, int | float) and not isinstance(item, bool))}  # fmt: skip
    missing = [key for key in _NEEDED if not math.isfinite(row.get(key, math.nan))]
    if missing:
        raise RunError(f"{place} has no number for {', '.join(missing)}: every evaluation needs {', '.join(_NEEDED)}")
    return row


def read_summary(path: Path) -> tuple[dict[str, Any], Summary]:
    """As it is written, and typed; empty where the run has not finished."""
    if not path.exists():
        return {}, Summary()
    try:
        summary = json.loads(_read(path))
        if isinstance(summary, dict) and summary:
            return summary, msgspec.convert(summary, Summary)
    except msgspec.ValidationError as error:
        raise RunError(f"{path} does not have the form of a summary ({error}): remove it or run again") from None
    except ValueError as error:
        raise RunError(f"{path} is not JSON ({error}): remove it or run again") from None
    raise RunError(f"{path} is not a JSON object with content: remove it or run again")


def _text_at(config: dict[str, Any], section: str, key: str) -> str:
    value = section_of(config, section).get(key)
    return value if isinstance(value, str) else ""
