"""A run whose parties are processes of this machine, joined by mutual TLS; its directory is that of `train`."""

import json
from dataclasses import replace
from pathlib import Path

from crosshatch.errors import ConfigError, DivergenceError, RunError
from crosshatch.exchanges import declared
from crosshatch.own_parts import blaming
from crosshatch.parties.evaluation.with_evaluation import EvaluationPlan, judging_party
from crosshatch.parties.parties_of import parties_of
from crosshatch.runs.choosing.auto import PRECISIONS
from crosshatch.runs.config import Config, config_text, part_files
from crosshatch.runs.directory import (
    FAILED,
    PARTIES,
    RunDirectory,
    open_existing,
    open_new,
    stored_config,
)
from crosshatch.runs.evaluating.own_test_rows import Briefing, hold_out
from crosshatch.runs.files import write_whole, writing
from crosshatch.runs.identity.run_data import load
from crosshatch.runs.launching.from_kept_round import begin_again, tell_decisions
from crosshatch.runs.launching.launched_run import LaunchedRun
from crosshatch.runs.launching.party_processes import Children
from crosshatch.runs.launching.process_plan import ProcessPlan
from crosshatch.runs.launching.seating import houses_of, seat, share_processes
from crosshatch.runs.one_writer import one_writer
from crosshatch.runs.prepare import Prepared
from crosshatch.runs.stopping import stop_on_signals
from crosshatch.runs.tracking.trackers import with_trackers
from crosshatch.runs.train import prepare_as
from crosshatch.runs.watcher import Outcome, Watcher, watched
from crosshatch.runtime.needed import require_runtime
from crosshatch.schedules import Adaptive


def launch(
    config: Config, *, out: Path | str, folder: Path | None = None, resume: bool = False,
    watcher: Watcher | None = None, from_round: int | None = None, anywhere: bool = False,
) -> Outcome:  # fmt: skip
    """Run a config with every party in a process of its own; arguments as of `train`.

    `from_round`: all parties begin again at a round whose state every one has kept. `anywhere`: a party that crashed
    may run a round again under another processor, torch or number of threads.
    """
    require_runtime("crosshatch launch")
    for option, given in ((f"--from {from_round}", from_round is not None), ("--anywhere", anywhere)):
        if given and not resume:
            raise ConfigError(f"{option} goes with --resume: it is about a run that there is")
    watcher = with_trackers(config.run.track, watcher)
    path = Path(out)
    with blaming(part_files(config).names), one_writer(path, "training"):
        directory = open_existing(path) if resume else open_new(path)
        begun = directory.config.is_file()
        if begun and not (path / PARTIES).is_dir():
            raise RunError(f"{path} was trained without processes: go on with crosshatch train --resume")
        prepared = prepare_as(stored_config(directory), config, directory, folder, watcher, load)
        _require_launchable(prepared)
        if from_round is not None:
            begin_again(path, from_round)
        if begun and directory.summary.is_file():
            done = json.loads(directory.summary.read_bytes())["rounds"]
            return Outcome(path, finished=True, round=done, was_finished=True)
        run = _seated(prepared, directory, watcher, begun=begun)
        tell_decisions(path / PARTIES, anywhere=anywhere)
        watcher.begin(replace(prepared, config=run.config), path)
        return watched(watcher, lambda: _go(run, begun=begun), lambda: Outcome(path, False, len(run.rows)))


def _require_launchable(prepared: Prepared) -> None:
    """Refuse what does not run as processes here."""
    config, algorithm, data = prepared.config, prepared.simulator.algorithm, prepared.simulator.data
    known, evaluate = declared(algorithm), config.evaluate
    asks_best = "suboptimality" in (evaluate.metrics or ())
    refused = {
        "algorithm 'central' has no parties": known.central,
        "JFL's pairs are processes that nobody would start": known.pairs,
        "federation.branches are processes that nobody would start": bool(data.branches),
        "adaptive step sizes need the gradient of all parties together": isinstance(algorithm.step_size, Adaptive),
        "privacy.encryption is not launched yet": config.privacy.encrypts,
        "recording messages needs those of all silos in one place, which no party has": config.run.record_messages,
        "evaluate.train_samples with the metric suboptimality, which is of all samples": asks_best
        and evaluate.train_samples is not None,
    }
    for why, applies in refused.items():
        if applies:
            raise ConfigError(f"crosshatch launch: {why}: use crosshatch train, which simulates it")


def _go(run: LaunchedRun, *, begun: bool) -> Outcome:
    """The processes end with this one, however it ends."""
    with stop_on_signals() as stop:
        try:
            return run.go(stop)
        except BaseException as error:
            run.children.stop()
            broken = run.children.tracebacks()
            if not begun and len(run.rows) <= 1 and not isinstance(error, DivergenceError | KeyboardInterrupt):
                run.directory.give_up()
                if broken:
                    with writing(run.directory.path):
                        write_whole(run.directory.path / FAILED, broken.encode())
                    raise RunError(f"{error}; all of it is in {run.directory.path / FAILED}") from None
            raise
        finally:
            run.children.stop()


def _seated(prepared: Prepared, directory: RunDirectory, watcher: Watcher, *, begun: bool) -> LaunchedRun:
    """The parties' folders, which are made where the run has none."""
    config, simulator, files = prepared.config, prepared.simulator, part_files(prepared.config).read()
    data, rounds, folder = simulator.data, config.run.rounds, directory.path / PARTIES
    plan = replace(
        EvaluationPlan.of(data, config.evaluate.every, rounds), train_samples=config.evaluate.train_samples
    )  # fmt: skip
    parties = parties_of(
        data, simulator.task, simulator.algorithm, seed=config.run.seed, codecs=config.codecs,
        precision=PRECISIONS[config.run.precision], evaluation=plan,
    )  # fmt: skip
    share_processes(parties, config.run.processes)
    houses, judge = houses_of(parties), judging_party(parties, data)
    homes = {party.name: folder / house / party.name for house, members in houses.items() for party in members}
    if not begun:
        if prepared.leakage is not None:
            prepared.leakage.record(simulator)
        directory.begin(config_text(config), files, prepared.fingerprint)
        every = config.run.checkpoint_every or config.evaluate.every
        seat(folder, parties, data, simulator.task, config, rounds=rounds, keep=range(every, rounds + 1, every))
        asked = "suboptimality" in (config.evaluate.metrics or ())
        optimum = (simulator.best.value, simulator.best.zero) if asked else None
        briefing = Briefing.of(data, optimum, per_client=config.evaluate.per_client)
        hold_out(folder, houses, plan, homes[judge], briefing)
    plans = [ProcessPlan.read(folder / house) for house in houses]  # of which none may be lost
    if other := next((one.rounds for one in plans if one.rounds != rounds), None):
        raise RunError(
            f"run.rounds = {rounds}, the processes of this run were set up for {other}: set run.rounds to {other}, or "
            "launch a new run"
        )
    children = Children(folder, houses, watcher.warned)
    return LaunchedRun(prepared, directory, files, watcher, children, parties, homes, judge, plans[0].run)
