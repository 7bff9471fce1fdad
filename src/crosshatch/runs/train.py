"""One run, from its config to its directory: rounds, evaluations, checkpoints.

A round is a pure function of the weights, the round number and the seed, so a run that goes on from a checkpoint ends
with the same bits as one that was never stopped.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

from crosshatch.errors import DivergenceError, RunError, TrainingError
from crosshatch.network import BandwidthNetwork
from crosshatch.own_parts import blaming
from crosshatch.report.measures import TargetsAhead
from crosshatch.runs.best_round import BestRound, ends_run
from crosshatch.runs.checkpoint import Checkpoint, read_checkpoint, write_checkpoint
from crosshatch.runs.choosing.auto import adopt
from crosshatch.runs.config import Config, config_text, part_files
from crosshatch.runs.directory import PARTIES, RunDirectory, open_existing, open_new, require_same, stored_config
from crosshatch.runs.evaluating.some_rows import SomeRows, metrics_row
from crosshatch.runs.files import write_whole, writing
from crosshatch.runs.identity.run_data import Load, load
from crosshatch.runs.one_writer import one_writer
from crosshatch.runs.own_parts.part_files import PartFiles
from crosshatch.runs.prepare import Prepared, prepare
from crosshatch.runs.recorded.message_files import recorder_of
from crosshatch.runs.stopping import Stop, stop_on_signals
from crosshatch.runs.summary import summarise
from crosshatch.runs.tracking.trackers import with_trackers
from crosshatch.runs.trained.judged import judged
from crosshatch.runs.trained.write_model import write_model
from crosshatch.runs.watcher import Outcome, Watcher, watched
from crosshatch.simulator.divergence import Divergence, Growth
from crosshatch.simulator.simulator import Simulator
from crosshatch.task.own_metric import find_metrics
from crosshatch.workers.hire import Hired, hired


def train(
    config: Config, *, out: Path | str, folder: Path | None = None, resume: bool = False,
    watcher: Watcher | None = None, load: Load = load, ray: str | None = None,
) -> Outcome:  # fmt: skip
    """Run a config into the directory `out`, reading named data sets from the data `folder`.

    Nothing is written before everything was checked. With `resume` a run that was stopped goes on from its checkpoint.
    A `watcher` and the trackers of `run.track` are told how it goes. `load` reads the data, and `ray` is the address of
    a cluster for `run.workers`. A run that diverges (by the rule of `simulator/divergence.py`, or because its numbers
    are no longer finite) is a DivergenceError in the end: its directory is complete, and `diverged` in its summary says
    why. Any other error before the second evaluation leaves nothing behind, a later one evaluations and checkpoint.

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
    watcher = with_trackers(config.run.track, watcher)
    path = Path(out)
    who = hired(config.run, config.run.threads_each, load, ray)
    with blaming(part_files(config).names), one_writer(path, "training"), who as workers:
        directory = open_existing(path) if resume else open_new(path)
        if (path / PARTIES).is_dir():
            raise RunError(f"the parties of {path} are processes: go on with crosshatch launch --resume")
        return _train(directory, config, folder=folder, resume=resume, watcher=watcher, workers=workers)


def _train(
    directory: RunDirectory, config: Config, *, folder: Path | None, resume: bool, watcher: Watcher, workers: Hired
) -> Outcome:  # fmt: skip
    out, stored = directory.path, stored_config(directory) if resume else None
    prepared = prepare_as(stored, config, directory, folder, watcher, workers.load)
    if stored is not None:
        directory.require_checkpoint()
    loop = _Loop(prepared, directory, part_files(prepared.config).read())
    if directory.checkpoint.is_file():
        loop.restore()
        done, asked = loop.simulator.round, config.run.rounds
        if done > asked:
            watcher.warned(f"{out} has {done} rounds, more than run.rounds = {asked}: it ends with these")
        if loop.is_done and directory.summary.is_file():
            loop.complain()
            return Outcome(out, finished=True, round=loop.simulator.round, was_finished=True)
    if prepared.leakage is not None:
        prepared.leakage.record(loop.simulator)
    workers.compute(loop.simulator, watcher.warned)
    watcher.begin(replace(prepared, config=loop.config), out)  # which may end where it is, beyond what was asked
    return watched(
        watcher, lambda: _run(loop, watcher), lambda: Outcome(out, False, loop.simulator.round, loop.summary)
    )


def prepare_as(
    stored: Config | None, config: Config, directory: RunDirectory, folder: Path | None, watcher: Watcher, load: Load
) -> Prepared:
    """What a run begins or, where its directory has a `stored` config, goes on with; refuses to go on as another."""
    known = stored.network.step_seconds if stored and isinstance(stored.network, BandwidthNetwork) else None
    prepared = prepare(
        config if stored is None else adopt(config, stored), folder=folder, step_seconds=known, tell=watcher.tell,
        of=None if stored is None else directory.path, warn=watcher.warned, keep=True, load=load,
    )  # fmt: skip
    if stored is not None:
        require_same(stored, prepared.config, directory)
    return prepared


def _run(loop: _Loop, watcher: Watcher) -> Outcome:
    with stop_on_signals() as stop:
        try:
            return loop.run(stop, watcher)
        except BaseException as error:
            early = not loop.restored and len(loop.rows) <= 1
            if early and not isinstance(error, DivergenceError):
                loop.directory.give_up()
            elif isinstance(error, TrainingError) and not loop.directory.summary.is_file():
                loop.mark_broken(str(error))
                raise DivergenceError(f"{error}; the rounds before are kept in {loop.directory.path}") from None
            raise


class _Loop:
    """The state of a run between rounds."""

    def __init__(self, prepared: Prepared, directory: RunDirectory, files: PartFiles) -> None:
        self.config = prepared.config
        self.simulator: Simulator = prepared.simulator
        self.fingerprint = prepared.fingerprint
        self.leakage = {} if prepared.leakage is None else {"leakage": prepared.leakage.table()}
        self.directory, self.files = directory, files
        self.metrics = find_metrics(self.config.evaluate.metrics or ())  # once: a file may change meanwhile
        self.rows: list[Mapping[str, Any]] = []
        self.strategy: dict[str, str] = {}
        self.restored = False
        self.diverged: Divergence | None = None
        self.best = BestRound.of(self.config)
        self.ahead = TargetsAhead(self.config.evaluate.parsed_targets, self.config.evaluate.smooth)
        self.some = SomeRows.of(self.config, self.simulator.data.y_test)
        self.summary: dict[str, Any] = {}
        self.recorder = recorder_of(self.config, self.simulator, directory.messages)
        self._under_way = 0  # the round, while it may break
        self._wall_before, self._started = 0.0, time.monotonic()

    @property
    def is_done(self) -> bool:
        """All rounds were run, or all targets reached, the training loss grown or patience lost where that ends it."""
        run, ahead = self.config.run, self.ahead.after(self.rows)
        return self.simulator.round >= run.rounds or ends_run(run, self.best, ahead, grown=self.diverged is not None)

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
        self._write_results({})

    def restore(self) -> None:
        tensors, state = read_checkpoint(self.directory.checkpoint)
        self.files.require_unchanged(state.parts, self.directory.path)
        self.simulator.restore(tensors, state.simulator)
        done = self.simulator.round
        if done > self.config.run.rounds:
            if self.directory.summary.is_file():
                raise RunError(
                    f"{self.directory.path} has {done} rounds already, run.rounds = {self.config.run.rounds}: set at "
                    "least as many"
                )
            self.config = replace(self.config, run=replace(self.config.run, rounds=done))  # it ends where it is
        self.rows = list(self.directory.cut_metrics(state.metrics_offset))
        if self.recorder is not None:
            self.recorder.cut(done)
        if self.best is not None:
            self.best.restore(tensors, self.rows)
        self.diverged = next(filter(None, map(self._look_for_divergence, self.rows)), None)
        self.strategy = dict(state.strategy)
        self._wall_before = state.wall_seconds
        self.restored = True

    def run(self, stop: Stop, watcher: Watcher) -> Outcome:
        """Rounds until done or asked to stop."""
        text = config_text(self.config)
        if self.restored:
            with writing(self.directory.path):
                self.directory.summary.unlink(missing_ok=True)  # more rounds than the run once had
                write_whole(self.directory.config, text.encode())
        else:
            first = self._measure()
            self.directory.begin(text, self.files, self.fingerprint)
            self._note(first, watcher)
            self._write_checkpoint()
            self.simulator.align()
        watcher.advance(self.simulator.round)
        if self.restored:
            self._warn(watcher)
        while not self.is_done:
            if stop.requested:
                self._write_checkpoint()
                self._write_models()
                return Outcome(self.directory.path, finished=False, round=self.simulator.round)
            self._run_round(watcher)
        if self.rows[-1]["round"] < self.simulator.round:  # it ends before the round it was to end with
            self._note(self._measure(), watcher)
        whole = self.some.complete(self.rows[-1], lambda drawn: self.simulator.evaluate(self.metrics, rows=drawn))
        if whole is not self.rows[-1]:
            self.rows[-1] = whole
            self.directory.replace_last(whole)
        return self._finish()

    def _run_round(self, watcher: Watcher) -> None:
        self._under_way = self.simulator.round + 1
        self.simulator.run_round()
        self.simulator.align()  # wherever a resumed run begins, it has the same memory to compute with
        done, last = self.simulator.round, self.simulator.round == self.config.run.rounds
        if last or done % self.config.evaluate.every == 0:
            self._note(self._measure(), watcher)
        if last or done % (self.config.run.checkpoint_every or self.config.evaluate.every) == 0:
            self._write_checkpoint()
        watcher.advance(done)

    def _measure(self) -> dict[str, Any]:
        seconds, validates = self._wall_seconds(), self.best is not None
        of = self.simulator, self.config, self.metrics, self.some, self.ahead.after(self.rows)
        return metrics_row(*of, wall_seconds=seconds, validates=validates)

    def _note(self, row: Mapping[str, Any], watcher: Watcher) -> None:
        self.directory.append_metrics(row)
        self.rows.append(row)
        if self.best is not None:
            self.best.see(row, self.simulator.weights)
        watcher.evaluated(row)
        if self.diverged is None:
            self.diverged = self._look_for_divergence(row)
            self._warn(watcher)

    def _warn(self, watcher: Watcher) -> None:
        if self.diverged is not None and self._ended_by is None:
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
        tensors |= {} if self.best is None else self.best.tensors()
        if self.recorder is not None:  # before the checkpoint, which says that they are there
            self.recorder.write(self.simulator.round)
        offset = self.directory.keep_metrics()
        checkpoint = Checkpoint(state, offset, self._wall_seconds(), self.strategy, self.files.hashes)
        write_checkpoint(self.directory.checkpoint, tensors, checkpoint)

    def _finish(self) -> Outcome:
        """The summary comes last: a run with a summary is finished."""
        self._write_checkpoint()
        self._write_results(judged(self.config, self.simulator, self.metrics, self.best, self.directory.path))
        self.complain()
        done, losses = self.simulator.round, (self.rows[0]["train_loss"], self.rows[-1]["train_loss"])
        advice = self.simulator.advise(done) if losses[1] > losses[0] else ""
        return Outcome(self.directory.path, True, done, self.summary, losses=losses, advice=advice)

    def _write_results(self, by_client: dict[str, Any]) -> None:
        self._write_models()
        chosen = None if self.best is None else self.best.describe()
        self.summary = summarise(self.config, self.simulator, self.rows, self.strategy, self.diverged, chosen)
        self.summary |= self.leakage | by_client | ({"parts": self.files.hashes} if self.files.hashes else {})
        self.directory.write_json(self.directory.summary, self.summary)

    def _write_models(self) -> None:
        """That of the last round, and that of the best where validation rows tell which it is."""
        of = self.simulator, self.config, self.files, self.rows[-1]
        write_model(self.directory.model, *of)
        if self.best is not None and self.best.weights:
            write_model(self.directory.best_model, *of, self.best)
