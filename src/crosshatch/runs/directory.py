"""The run directory: what is in it, and how it is begun, continued and given up.

config.toml     the config with everything spelled out; `crosshatch train config.toml` runs it again
metrics.jsonl   one JSON object per evaluation
summary.json    totals, final and best metrics, arrival at the targets; written when the run has ended
parts/          copies of the files of a user's own parts, where a config names any
model/          the trained model, all that predicting needs: one safetensors and one JSON file per silo (weights and
                buffers; preparation and block), head.safetensors where there is a head, model.json for what is common
best_model/     where there are validation rows: likewise the model of the best round by them
checkpoint/     the state to resume from
tracking/       what the trackers of `run.track` keep of it, a folder each
messages/       where the config asks for it: what silos sent each other, for audits
audit_*.json    what audits found, written by these
report.html     the run on a page, written by the command line
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, final

from crosshatch.errors import RunError
from crosshatch.runs.config import Config, changed_settings, decode_config
from crosshatch.runs.files import PARTIAL, write_whole, writing
from crosshatch.runs.parts.part_files import PARTS
from crosshatch.runs.parts.part_names import started_from
from crosshatch.runs.tracking.tracker import FOLDER

MESSAGES = "messages"
KNOWN = {
    "config.toml", "metrics.jsonl", "summary.json", PARTS, "model", "best_model", "checkpoint", MESSAGES, FOLDER,
    "report.html",
}  # fmt: skip


@final
class BusyError(RunError):
    """Another process writes into the folder, so nothing in it is ours to remove."""


@dataclass
class RunDirectory:
    """An open run directory; `made` are the folders this process made, the outermost first."""

    path: Path
    made: list[Path] = field(default_factory=list)
    _handle: int | None = None  # of the folder, while it is ours alone

    @property
    def config(self) -> Path:
        return self.path / "config.toml"

    @property
    def metrics(self) -> Path:
        return self.path / "metrics.jsonl"

    @property
    def summary(self) -> Path:
        return self.path / "summary.json"

    @property
    def model(self) -> Path:
        return self.path / "model"

    @property
    def parts(self) -> Path:
        return self.path / PARTS

    @property
    def best_model(self) -> Path:
        return self.path / "best_model"

    @property
    def messages(self) -> Path:
        return self.path / MESSAGES

    @property
    def checkpoint(self) -> Path:
        return self.path / "checkpoint" / "state.safetensors"

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """No other process may write here meanwhile. A folder that is not there yet is taken by `begin`."""
        try:
            if self.path.is_dir():
                self._take()
            yield
        finally:
            if self._handle is not None:
                os.close(self._handle)
                self._handle = None

    def _take(self) -> None:
        """Lock the folder itself: the lock ends with the process, however it ends, and no file is left."""
        if os.name != "posix" or self._handle is not None:
            return
        import fcntl

        handle = os.open(self.path, os.O_RDONLY)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            self.made.clear()
            raise BusyError(f"another process is writing {self.path}: wait for it, or choose another --out") from None
        except OSError:  # a file system without locks
            os.close(handle)
        else:
            self._handle = handle

    def begin(self, config_text: str, parts: Mapping[str, bytes]) -> None:
        """Make the folder, clear what an earlier start left, and write the config and the files of own parts."""
        with writing(self.path):
            folder = self.path
            while not folder.exists():
                self.made.insert(0, folder)
                folder = folder.parent
            self.path.mkdir(parents=True, exist_ok=True)
            self._take()
            self.checkpoint.parent.mkdir(exist_ok=True)
            self.summary.unlink(missing_ok=True)
            for folder in (self.model, self.best_model, self.parts, self.messages):
                shutil.rmtree(folder, ignore_errors=True)
            for name, content in parts.items():
                self.parts.mkdir(exist_ok=True)
                write_whole(self.parts / name, content)
            self.metrics.write_bytes(b"")
            write_whole(self.config, config_text.encode())

    def append_metrics(self, row: Mapping[str, float]) -> None:
        """Add an evaluation as one line. Floats are written in full, so equal runs write equal bytes."""
        with writing(self.path), open(self.metrics, "ab") as file:
            file.write(json.dumps(row, allow_nan=False).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())

    def cut_metrics(self, offset: int) -> list[dict[str, Any]]:
        """Drop what was written after a checkpoint; the evaluations that stay."""
        with writing(self.path):
            if not self.metrics.is_file() or self.metrics.stat().st_size < offset:
                raise RunError(f"{self.metrics} is shorter than its checkpoint says: it was changed, run again")
            if self.metrics.stat().st_size > offset:
                os.truncate(self.metrics, offset)
        return [json.loads(line) for line in self.metrics.read_bytes().splitlines()]

    def write_json(self, path: Path, content: Mapping[str, Any]) -> None:
        """One JSON file, whole or not at all."""
        with writing(self.path):
            write_whole(path, (json.dumps(content, indent=2, allow_nan=False) + "\n").encode())

    def give_up(self) -> None:
        """Remove everything this process made, the folders above it that were missing included."""
        if not self.made:
            self._clear()
            return
        shutil.rmtree(self.path, ignore_errors=True)
        for folder in reversed(self.made[:-1]):
            with contextlib.suppress(OSError):  # somebody else has put something there meanwhile
                folder.rmdir()

    def _clear(self) -> None:
        """Empty a folder that was there before, but had nothing in it of worth."""
        for name in KNOWN - {"report.html"}:
            entry = self.path / name
            if entry.is_dir():
                shutil.rmtree(entry, ignore_errors=True)
            else:
                entry.unlink(missing_ok=True)


def open_new(path: Path) -> RunDirectory:
    """A directory that is absent or empty; nothing is written yet."""
    if path.exists() and not path.is_dir():
        raise RunError(f"the output folder {path} is a file: choose another --out")
    if path.is_dir() and any(path.iterdir()):
        raise RunError(f"the output folder {path} exists and is not empty: choose another --out, or --resume to go on")
    return RunDirectory(path)


def open_existing(path: Path) -> RunDirectory:
    """A directory of an earlier start; one that is absent or empty is as good as a run killed at once."""
    if path.exists() and not path.is_dir():
        raise RunError(f"the output folder {path} is a file: choose another --out")
    strange = [entry.name for entry in path.iterdir() if _strange(entry.name)] if path.is_dir() else []
    if strange and not (path / "config.toml").is_file():
        raise RunError(f"{path} is not a run directory (it has {sorted(strange)[0]}): choose another --out")
    return RunDirectory(path)


def _strange(name: str) -> bool:
    return name not in KNOWN and not name.endswith(PARTIAL)


def stored_config(directory: RunDirectory) -> Config | None:
    """The config of the run that is in a directory; None where none is."""
    if not directory.config.is_file():
        return None
    try:
        return decode_config(started_from(tomllib.loads(directory.config.read_text(encoding="utf-8")), directory.path))
    except tomllib.TOMLDecodeError as error:
        raise RunError(f"{directory.config} is not TOML ({error}): it was changed, use another --out") from None


def require_same(stored: Config, config: Config, directory: RunDirectory) -> None:
    """Only the number of rounds may differ, when a run ends before, who is told of it and what is said of clients."""
    run = config.run
    ends = replace(stored.run, rounds=run.rounds, on_divergence=run.on_divergence, patience=run.patience)
    evaluate = replace(stored.evaluate, per_client=config.evaluate.per_client)
    stored = replace(stored, run=replace(ends, track=run.track), evaluate=evaluate)
    changed = changed_settings(stored, config)
    if changed:
        raise RunError(
            f"the run in {directory.path} was started with another config: {', '.join(changed)}; undo this, or choose "
            "another --out"
        )
