"""The run directory: what is in it, and how it is begun, continued and given up.

config.toml     the config with everything spelled out; `crosshatch train config.toml` runs it again
scores.safetensors  where evaluate.keep_scores asks for it: scores and labels of the validation and the test rows
metrics.jsonl   one JSON object per evaluation
fingerprint.json  which data it was made on: keyed digests that their owner can compare, and counts
summary.json    totals, final and best metrics, arrival at the targets; written when the run has ended
parts/          copies of the files of a user's own parts, where a config names any
model/          the trained model, all that predicting needs: one safetensors and one JSON file per silo (weights and
                buffers; preparation and block), head.safetensors where there is a head, model.json for what is common
best_model/     where there are validation rows: likewise the model of the best round by them
checkpoint/     the state to resume from
tracking/       what the trackers of `run.track` keep of it, a folder each
parties/        where parties are processes: a folder each, with its share, certificate and state
messages/       where the config asks for it: what silos sent each other, for audits
audit_*.json    what audits found, written by these
report.html     the run on a page, written by the command line
failed.txt      all that is left of a launched run that came to nothing: what the processes that broke said
.writer         while somebody writes into the folder: who (see one_writer.py)
"""

import json
import os
import shutil
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from crosshatch.data.identity.fingerprint import FINGERPRINT, Fingerprint, fingerprint_text
from crosshatch.errors import RunError
from crosshatch.runs.config import Config, changed_settings, decode_config
from crosshatch.runs.files import PARTIAL, write_json, write_whole, writing
from crosshatch.runs.one_writer import LOCK
from crosshatch.runs.own_parts.part_files import PARTS, PartFiles, started_from
from crosshatch.runs.tables.read_toml import read_toml
from crosshatch.runs.tracking.tracker import FOLDER

MESSAGES = "messages"
PARTIES = "parties"
FAILED = "failed.txt"
KNOWN = {
    "config.toml", "metrics.jsonl", "summary.json", PARTS, "model", "best_model", "checkpoint", MESSAGES, FOLDER,
    "report.html", LOCK, FINGERPRINT, "scores.safetensors", PARTIES, FAILED,
}  # fmt: skip


class RunDirectory:
    """A run directory and its files; whoever writes into it does so inside `one_writer`."""

    def __init__(self, path: Path) -> None:
        self.path, self.checkpoint = path, path / "checkpoint" / "state.safetensors"
        self.config, self.metrics, self.summary = path / "config.toml", path / "metrics.jsonl", path / "summary.json"
        self.model, self.best_model = path / "model", path / "best_model"
        self.parts, self.messages = path / PARTS, path / MESSAGES

    def begin(self, config_text: str, parts: PartFiles, fingerprint: Fingerprint | None) -> None:
        """Clear what an earlier start left, and write the config, own parts and the fingerprint of the data."""
        with writing(self.path):
            self.checkpoint.parent.mkdir(exist_ok=True)
            self.summary.unlink(missing_ok=True)
            for name in (FINGERPRINT, "scores.safetensors", FAILED):
                (self.path / name).unlink(missing_ok=True)
            for folder in (self.model, self.best_model, self.parts, self.messages):
                shutil.rmtree(folder, ignore_errors=True)
            parts.write(self.path)
            if fingerprint is not None:
                write_whole(self.path / FINGERPRINT, fingerprint_text(fingerprint))
            self.metrics.write_bytes(b"")
            write_whole(self.config, config_text.encode())

    def append_metrics(self, row: Mapping[str, float]) -> None:
        """Add an evaluation as one line. Floats are written in full, so equal runs write equal bytes.

        It lasts through a power cut from the next `keep_metrics` on.
        """
        with writing(self.path), open(self.metrics, "ab") as file:
            file.write(json.dumps(row, allow_nan=False).encode() + b"\n")

    def keep_metrics(self) -> int:
        """Put the evaluations onto the disk, before a checkpoint that says that they are there; how many bytes."""
        with writing(self.path), open(self.metrics, "ab") as file:
            os.fsync(file.fileno())
            return file.tell()

    def replace_last(self, row: Mapping[str, float]) -> None:
        lines = self.metrics.read_bytes().splitlines(keepends=True)
        with writing(self.path):
            os.truncate(self.metrics, sum(map(len, lines[:-1])))
        self.append_metrics(row)

    def cut_metrics(self, offset: int) -> list[dict[str, Any]]:
        """Drop what was written after a checkpoint; the evaluations that stay."""
        with writing(self.path):
            if not self.metrics.is_file() or self.metrics.stat().st_size < offset:
                raise RunError(f"{self.metrics} is shorter than its checkpoint says: it was changed, run again")
            if self.metrics.stat().st_size > offset:
                os.truncate(self.metrics, offset)
        return [json.loads(line) for line in self.metrics.read_bytes().splitlines()]

    def write_json(self, path: Path, content: Mapping[str, Any]) -> None:
        with writing(self.path):
            write_json(path, content, allow_nan=False)

    def require_checkpoint(self) -> None:
        """Refuse a finished run whose checkpoint is gone: it would begin again and replace what there is."""
        if self.checkpoint.is_file() or not self.summary.is_file():
            return
        if json.loads(self.summary.read_bytes()).get("diverged") is None:
            raise RunError(
                f"the run in {self.path} has finished, and its checkpoint is gone: put it back, or choose another --out"
            )

    def give_up(self) -> None:
        """Remove what a run has written that came to nothing; a page of an earlier one stays."""
        for name in KNOWN - {LOCK, "report.html", FAILED}:
            entry = self.path / name
            if entry.is_dir():
                shutil.rmtree(entry, ignore_errors=True)
            else:
                entry.unlink(missing_ok=True)


def open_new(path: Path) -> RunDirectory:
    """A directory that has nothing in it but what is said of an earlier failure, inside `one_writer`."""
    if any(entry.name not in (LOCK, FAILED) for entry in path.iterdir()):
        raise RunError(f"the output folder {path} exists and is not empty: choose another --out, or --resume to go on")
    return RunDirectory(path)


def open_existing(path: Path) -> RunDirectory:
    """A directory of an earlier start, inside `one_writer`; an empty one is as good as a run killed at once."""
    strange = [entry.name for entry in path.iterdir() if entry.name not in KNOWN and not entry.name.endswith(PARTIAL)]
    if strange and not (path / "config.toml").is_file():
        raise RunError(f"{path} is not a run directory (it has {sorted(strange)[0]}): choose another --out")
    found = RunDirectory(path)
    trained = found.metrics.is_file() and found.metrics.stat().st_size > 0
    begun = trained or found.checkpoint.is_file() or (path / PARTIES).is_dir()
    if begun and not found.config.is_file():  # it would go on under whatever config is given now
        raise RunError(f"the run in {path} has lost its config.toml: put it back, or choose another --out")
    with writing(path):
        for left in path.rglob(f"*{PARTIAL}"):  # by a process that was killed
            left.unlink()
    return found


def stored_config(directory: RunDirectory) -> Config | None:
    """The config of the run that is in a directory; None where none is."""
    if not directory.config.is_file():
        return None
    try:
        return decode_config(started_from(read_toml(directory.config.read_text(encoding="utf-8")), directory.path))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise RunError(f"{directory.config} is not TOML ({error}): it was changed, use another --out") from None


def require_same(stored: Config, config: Config, directory: RunDirectory) -> None:
    """Only the number of rounds may differ, when a run ends before, who is told of it and what is said of clients.

    And how many gradients may be decrypted: a run that was stopped by it may be allowed more.
    """
    run = config.run
    ends = replace(stored.run, rounds=run.rounds, on_divergence=run.on_divergence, patience=run.patience)
    if run.workers is not None and stored.run.workers is not None:  # bits do not depend on how many there are
        ends = replace(ends, workers=run.workers, threads=run.threads)
    evaluate = replace(stored.evaluate, per_client=config.evaluate.per_client)
    privacy = replace(stored.privacy, reads_per_batch=config.privacy.reads_per_batch)
    stored = replace(stored, run=replace(ends, track=run.track), evaluate=evaluate, privacy=privacy)
    changed = changed_settings(stored, config)
    if changed:
        copied = stored.run.name != run.name and len(changed) == 1
        remedy = f"add --set run.name={stored.name}, as a copied run keeps its name" if copied else "undo this"
        raise RunError(
            f"the run in {directory.path} was started with another config: {', '.join(changed)}; {remedy}, or choose "
            "another --out"
        )
