"""A run whose parties are processes of this machine, joined by mutual TLS; its directory is that of `train`."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from crosshatch.errors import ConfigError, RunError
from crosshatch.exchanges import declared
from crosshatch.parties.parties_of import parties_of
from crosshatch.runs.choosing.auto import PRECISIONS
from crosshatch.runs.config import Config
from crosshatch.runs.directory import PARTIES
from crosshatch.runs.launching.begin_again import begin_again, tell_decisions
from crosshatch.runs.launching.children import Children
from crosshatch.runs.launching.followed import Followed
from crosshatch.runs.launching.process_plan import Plan
from crosshatch.runs.launching.seating import houses_of, seat
from crosshatch.runs.launching.shared_processes import share_processes
from crosshatch.runs.one_writer import one_writer
from crosshatch.runs.prepare import Prepared
from crosshatch.runs.train import train
from crosshatch.runs.watcher import Outcome, Watcher
from crosshatch.runtime.needed import require_runtime
from crosshatch.schedules import Adaptive

_GOODBYE = 60.0  # seconds for processes to end after the last round
_STOPPING = 10.0  # seconds for them to stop after the same round, before they are killed


def launch(
    config: Config, *, out: Path | str, folder: Path | None = None, resume: bool = False,
    watcher: Watcher | None = None, from_round: int | None = None, anywhere: bool = False,
) -> Outcome:  # fmt: skip
    """Run a config with every party in a process of its own; arguments as of `train`.

    `from_round`: all parties begin again at a round whose state every one has kept. `anywhere`: a party that crashed
    may run a round again under another processor, torch or number of threads.
    """
    require_runtime("crosshatch launch")
    watcher = watcher or Watcher()
    with one_writer(Path(out), "training"):
        if from_round is not None:
            if not resume:
                raise ConfigError(f"--from {from_round} goes with --resume: it is about a run that there is")
            begin_again(Path(out), from_round)
        return train(
            config, out=out, folder=folder, resume=resume, watcher=watcher,
            follow=lambda prepared, path: _follow(
                _require_parties(prepared), path, watcher, begin=from_round is None, anywhere=anywhere
            ),
        )  # fmt: skip


@contextmanager
def _follow(
    prepared: Prepared, out: Path, watcher: Watcher, *, begin: bool = True, anywhere: bool = False
) -> Iterator[None]:
    """Have the processes run, and the simulator follow them."""
    config, simulator = prepared.config, prepared.simulator
    parties = parties_of(
        simulator.data, simulator.task, simulator.algorithm, seed=config.run.seed, codecs=config.codecs,
        precision=PRECISIONS[config.run.precision],
    )  # fmt: skip
    share_processes(parties, config.run.processes)
    folder, rounds = out / PARTIES, config.run.rounds
    every = {config.evaluate.every, config.run.checkpoint_every or config.evaluate.every}
    keep = frozenset({rounds, *(r for step in every for r in range(step, rounds + 1, step))})
    if simulator.round == 0 and begin:
        shutil.rmtree(folder, ignore_errors=True)
        seat(folder, parties, simulator.data, simulator.task, config, rounds=rounds, keep=keep)
    houses = houses_of(parties)
    plan = _plan_of(folder / next(iter(houses)), rounds)
    homes = {party.name: folder / house / party.name for house, members in houses.items() for party in members}
    tell_decisions(folder, anywhere=anywhere)
    children = Children(folder, houses, watcher.warned)
    children.start()
    state = simulator.state
    followed = Followed(state, simulator.meter, parties, homes, plan.run, keep, children.check)
    state.elsewhere = followed
    try:
        yield
        if simulator.round < rounds:
            children.end_together(_STOPPING)
        children.wait(_GOODBYE if simulator.round == rounds else 0.0)
        (watcher.warned if followed.is_far else watcher.tell)(ending(len(houses), followed))
    finally:
        children.stop()


def ending(processes: int, followed: Followed) -> str:
    """How the processes' model compares with the simulator's."""
    about, furthest = f"{processes} processes over mutual TLS 1.3", followed.furthest
    if furthest is None:
        return f"{about}; no round was compared with the simulator's"
    if followed.is_far:
        return (
            f"{about}; their model was up to {furthest:.1e} away from the simulator's, relative to its largest weight, "
            "more than by rounding, though bytes and messages were equal: training may diverge, try a smaller "
            "algorithm.step_size"
        )
    return (
        f"{about}; their model was within {furthest:.1e} of the simulator's, relative to its largest weight, in all "
        "rounds compared, bytes and messages were equal"
    )


def _plan_of(home: Path, rounds: int) -> Plan:
    """The plan that the processes of a run have, for as many rounds as it is to have."""
    if not home.is_dir():
        raise RunError(f"{home.parent.parent} was trained without processes: go on with crosshatch train --resume")
    plan = Plan.read(home)
    if plan.rounds != rounds:
        raise RunError(
            f"run.rounds = {rounds}, the processes of this run were set up for {plan.rounds}: set run.rounds to "
            f"{plan.rounds}, or launch a new run"
        )
    return plan


def _require_parties(prepared: Prepared) -> Prepared:
    """Refuse what does not run as processes here."""
    config, algorithm, data = prepared.config, prepared.simulator.algorithm, prepared.simulator.data
    known, step_size = declared(algorithm), algorithm.step_size
    refused = {
        "algorithm 'central' has no parties": known.central,
        "JFL's pairs are processes that nobody would start": known.pairs,
        "federation.branches are processes that nobody would start": bool(data.branches),
        "adaptive step sizes need the gradient of all parties together": isinstance(step_size, Adaptive),
        "privacy.encryption is not launched yet": config.privacy.encrypts,
        "recording messages needs those of all silos in one place, which no party has": bool(
            config.run.record_messages
        ),
    }
    for why, applies in refused.items():
        if applies:
            raise ConfigError(f"crosshatch launch: {why}: use crosshatch train, which simulates it")
    return prepared
