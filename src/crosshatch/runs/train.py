"""One run, from its config to its directory: rounds, evaluations, checkpoints.

A round is a pure function of the weights, the round number and the seed, so a run that goes on from a checkpoint ends
with the same bits as one that was never stopped.
"""

from __future__ import annotations

import time
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

from crosshatch.errors import DivergenceError, RunError, TrainingError
from crosshatch.network import BandwidthNetwork
from crosshatch.report.measures import first_reaching
from crosshatch.runs.checkpoint import Checkpoint, read_checkpoint, write_checkpoint
from crosshatch.runs.choosing.auto import adopt
from crosshatch.runs.config import Config, changed_settings, config_text, decode_config
from crosshatch.runs.directory import BusyError, RunDirectory, open_existing, open_new
from crosshatch.runs.files import write_whole, writing
from crosshatch.runs.prepare import Prepared, prepare
from crosshatch.runs.stopping import Stop, stop_on_signals
from crosshatch.runs.summary import summarise, write_model
from crosshatch.runs.user_block_errors import blaming, own_files
from crosshatch.simulator.divergence import Divergence, Growth
from crosshatch.simulator.simulator import Simulator


class Watcher(Protocol):
    """Somebody to tell how it goes."""

    def begin(self, prepared: Prepared, path: Path) -> None:
        """Everything was checked; rounds follow."""
        ...

    def advance(self, round: int) -> None:
        """So many rounds are done."""
        ...

    def evaluated(self, row: Mapping[str, Any]) -> None:
        """A line of metrics.jsonl."""
        ...

    def warned(self, text: str) -> None:
        """The run goes on, though it has diverged."""
        ...


@dataclass(frozen=True)
class Outcome:
    """How a run ended: `finished`, or stopped by a signal; `summary` is empty unless it finished.

    `losses`: the training loss before the first round and after the last. `advice`: what to change if it has grown.
    """

    path: Path
    finished: bool
    round: int
    summary: dict[str, Any] = field(default_factory=dict)
    was_finished: bool = False
    losses: tuple[float, float] | None = None
    advice: str = ""


def train(
    config: Config, *, out: Path, folder: Path | None = None, resume: bool = False, watcher: Watcher | None = None
) -> Outcome:
    """Run a config into the directory `out`, reading named data sets from the data `folder`.

    Nothing is written before everything was checked. With `resume` a run that was stopped goes on from its checkpoint.
    An error before the second evaluation leaves nothing behind; a later one leaves the evaluations and the checkpoint.
    A run that diverges (by the rule of `simulator/divergence.py`, or because its numbers are no longer finite) is a
    DivergenceError in the end: its directory is complete, and `diverged` in its summary says where and why.

    >>> import tempfile
    >>> from crosshatch import read_config
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "wine.toml")
    ...     written = path.write_text('data = {name = "wine"}')
    ...     config = read_config(path, ["algorithm.name=fedbcd", "run.rounds=20", "run.threads=1"])
    ...     outcome = train(config, out=Path(folder, "run"))
    >>> outcome.finished, outcome.summary["final"]["accuracy"] > 0.9
    (True, True)
    """
    with blaming(own_files(config.model)):
        directory = open_existing(out) if resume else open_new(out)
        with directory.alone():
            return _train_in(directory, config, folder=folder, resume=resume, watcher=watcher)


def _train_in(
    directory: RunDirectory, config: Config, *, folder: Path | None, resume: bool, watcher: Watcher | None
) -> Outcome:
    out = directory.path
    stored = _stored_config(directory) if resume else None
    known = stored.network.step_seconds if stored and isinstance(stored.network, BandwidthNetwork) else None
    config = config if stored is None else adopt(config, stored)
    prepared = prepare(config, folder=folder, step_seconds=known)
    if stored is not None:
        _require_same(stored, prepared.config, directory)
    loop = _Loop(prepared, directory)
    if directory.checkpoint.is_file():
        loop.restore()
        if loop.is_done and directory.summary.is_file():
            loop.complain()
            return Outcome(out, finished=True, round=loop.simulator.round, was_finished=True)
    if watcher is not None:
        watcher.begin(prepared, out)
    with stop_on_signals() as stop:
        try:
            return loop.run(stop, watcher)
        except BaseException as error:
            if not loop.restored and len(loop.rows) <= 1 and not isinstance(error, BusyError):
                directory.give_up()
            elif isinstance(error, TrainingError) and not isinstance(error, DivergenceError):
                loop.mark_broken(str(error))
                raise DivergenceError(f"{error}; the rounds before are kept in {out}") from None
            raise


class _Loop:
    """The state of a run between rounds."""

    def __init__(self, prepared: Prepared, directory: RunDirectory) -> None:
        self.config = prepared.config
        self.simulator: Simulator = prepared.simulator
        self.directory = directory
        self.rows: list[Mapping[str, Any]] = []
        self.strategy: dict[str, str] = {}
        self.restored = False
        self.diverged: Divergence | None = None
        self._under_way = 0  # the round, while it may break
        self._wall_before = 0.0
        self._started = time.monotonic()

    @property
    def is_done(self) -> bool:
        """All rounds were run, or all targets reached or the training loss grown where that ends the run."""
        if self.simulator.round >= self.config.run.rounds or self._ended_by is not None:
            return True
        targets = self.config.evaluate.parsed_targets
        return self.config.run.stop_at_targets and all(first_reaching(self.rows, target) for target in targets)

    @property
    def _ended_by(self) -> Divergence | None:
        return self.diverged if self.config.run.on_divergence == "stop" else None

    def complain(self) -> None:
        """A DivergenceError where the run ended by the rule."""
        if self._ended_by is not None:
            raise DivergenceError(
                f"{self._ended_by.why}; the run is kept in {self.directory.path}, --resume with run.on_divergence = "
                "'warn' goes on with it"
            )

    def mark_broken(self, why: str) -> None:
        """The summary of a run whose numbers are no longer finite; its checkpoint stays the last one that was."""
        self.diverged = self.diverged or Divergence(self._under_way, why)
        self._write_results()

    def restore(self) -> None:
        """Go on from the checkpoint."""
        tensors, state = read_checkpoint(self.directory.checkpoint)
        self.simulator.restore(tensors, state.simulator)
        if self.simulator.round > self.config.run.rounds:
            raise RunError(
                f"{self.directory.path} has {self.simulator.round} rounds already, run.rounds = "
                f"{self.config.run.rounds}: set at least as many"
            )
        self.rows = list(self.directory.cut_metrics(state.metrics_offset))
        self.diverged = next(filter(None, map(self._look_for_divergence, self.rows)), None)
        self.strategy = dict(state.strategy)
        self._wall_before = state.wall_seconds
        self.restored = True

    def run(self, stop: Stop, watcher: Watcher | None) -> Outcome:
        """Rounds until done or asked to stop."""
        text = config_text(self.config)
        if self.restored:
            with writing(self.directory.path):
                self.directory.summary.unlink(missing_ok=True)  # more rounds than the run once had
                write_whole(self.directory.config, text.encode())
        else:
            first = self._measure()
            self.directory.begin(text)
            self._note(first, watcher)
            self._write_checkpoint()
            self.simulator.align()
        if watcher is not None:
            watcher.advance(self.simulator.round)
        if self.restored:
            self._warn(watcher)
        while not self.is_done:
            if stop.requested:
                self._write_checkpoint()
                return Outcome(self.directory.path, finished=False, round=self.simulator.round)
            self._run_round(watcher)
        return self._finish()

    def _run_round(self, watcher: Watcher | None) -> None:
        self._under_way = self.simulator.round + 1
        self.simulator.run_round()
        self.simulator.align()  # wherever a resumed run begins, it has the same memory to compute with
        done, last = self.simulator.round, self.simulator.round == self.config.run.rounds
        assert self.config.run.checkpoint_every is not None
        if last or done % self.config.evaluate.every == 0:
            self._note(self._measure(), watcher)
        if last or done % self.config.run.checkpoint_every == 0:
            self._write_checkpoint()
        if watcher is not None:
            watcher.advance(done)

    def _measure(self) -> dict[str, Any]:
        simulator = self.simulator
        assert self.config.evaluate.metrics is not None
        return {
            "iteration": simulator.iteration,
            "round": simulator.round,
            "bytes": simulator.meter.bytes,
            "messages": simulator.meter.messages,
            **({} if simulator.communications is None else {"communications": simulator.communications}),
            "sim_seconds": simulator.seconds,
            "wall_seconds": round(self._wall_seconds(), 3),
            "train_loss": simulator.objective(self.config.evaluate.train_samples),
            **simulator.evaluate(self.config.evaluate.metrics),
        }

    def _note(self, row: Mapping[str, Any], watcher: Watcher | None) -> None:
        self.directory.append_metrics(row)
        self.rows.append(row)
        if watcher is not None:
            watcher.evaluated(row)
        if self.diverged is None:
            self.diverged = self._look_for_divergence(row)
            self._warn(watcher)

    def _warn(self, watcher: Watcher | None) -> None:
        if watcher is not None and self.diverged is not None and self._ended_by is None:
            watcher.warned(self.diverged.why)

    def _look_for_divergence(self, row: Mapping[str, Any]) -> Divergence | None:
        return self._rule.notice(row["train_loss"], row["round"], self.simulator.advise)

    @cached_property
    def _rule(self) -> Growth:
        return Growth(self.rows[0]["train_loss"], self.simulator.zero_objective(self.config.evaluate.train_samples))

    def _wall_seconds(self) -> float:
        return self._wall_before + time.monotonic() - self._started

    def _write_checkpoint(self) -> None:
        for silo, kinds in self.simulator.strategies.items():  # and what was chosen before a resumed run was stopped
            seen = {*kinds.split(", "), *self.strategy.get(silo, kinds).split(", ")}
            self.strategy[silo] = ", ".join(sorted(seen))
        tensors, state = self.simulator.snapshot()
        offset = self.directory.metrics.stat().st_size
        write_checkpoint(
            self.directory.checkpoint, tensors, Checkpoint(state, offset, self._wall_seconds(), self.strategy)
        )

    def _finish(self) -> Outcome:
        """The summary comes last: a run with a summary is finished."""
        self._write_checkpoint()
        summary = self._write_results()
        self.complain()
        done, losses = self.simulator.round, (self.rows[0]["train_loss"], self.rows[-1]["train_loss"])
        advice = self.simulator.advise(done)
        return Outcome(self.directory.path, True, done, summary, losses=losses, advice=advice)

    def _write_results(self) -> dict[str, Any]:
        write_model(self.directory.model, self.simulator)
        summary = summarise(self.config, self.simulator, self.rows, self.strategy, self.diverged)
        self.directory.write_json(self.directory.summary, summary)
        return summary


def _stored_config(directory: RunDirectory) -> Config | None:
    if not directory.config.is_file():
        return None
    try:
        return decode_config(tomllib.loads(directory.config.read_text(encoding="utf-8")))
    except tomllib.TOMLDecodeError as error:
        raise RunError(f"{directory.config} is not TOML ({error}): it was changed, use another --out") from None


def _require_same(stored: Config, config: Config, directory: RunDirectory) -> None:
    """Only the number of rounds may differ, and only grow, and what divergence does."""
    rounds, on_divergence = max(stored.run.rounds, config.run.rounds), config.run.on_divergence
    stored = replace(stored, run=replace(stored.run, rounds=rounds, on_divergence=on_divergence))
    changed = changed_settings(stored, config)
    if changed:
        raise RunError(
            f"the run in {directory.path} was started with another config: {', '.join(changed)}; undo this, or choose "
            "another --out"
        )
