"""`crosshatch plan --cluster`: what a round would take on workers, from short trials on this machine."""

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from crosshatch.errors import ConfigError
from crosshatch.runs.config import Config
from crosshatch.runs.identity.run_data import load
from crosshatch.runs.prepare import assemble, try_rounds
from crosshatch.workers.employ import employ, require_possible
from crosshatch.workers.trial import RoundTime, TrialCrew

TRIED_CLIENTS = 40
"""Of each silo at most: of more clients so many are tried, and what they take grows with their number."""
_ROUNDS = 2
_MOST = 4096


@dataclass(frozen=True)
class Machines:
    """So many workers with so many cores each."""

    workers: int
    cores: int


@dataclass(frozen=True)
class ClusterPlan:
    """What a round would take on some machines, and on one core; `tried` clients of each silo were computed here."""

    config: Config
    tried: int | None
    one: RoundTime
    each: tuple[tuple[Machines, RoundTime], ...]


def read_machines(text: str) -> tuple[Machines, ...]:
    """From `--cluster`.

    >>> read_machines("1x1,16x8")
    (Machines(workers=1, cores=1), Machines(workers=16, cores=8))
    """
    found = []
    for one in text.split(","):
        match = re.fullmatch(r"\s*(\d+)\s*x\s*(\d+)\s*", one)
        if match is None or not all(0 < int(number) <= _MOST for number in match.groups()):
            raise ConfigError(
                f"--cluster {text}: write workers x cores of each, from 1 to {_MOST:,}, for example 2x8,16x8"
            )
        found.append(Machines(int(match[1]), int(match[2])))
    return tuple(found)


def plan_cluster(config: Config, machines: Sequence[Machines], *, folder: Path | None) -> ClusterPlan:
    """Rounds of the config, or of the same with fewer clients and as many rows for each."""
    pieces = max(config.run.pieces, *(one.workers for one in machines))
    clients, tried, times = config.federation.clients, None, 1.0
    if isinstance(clients, int) and clients > TRIED_CLIENTS:
        tried, times, batch = TRIED_CLIENTS, clients / TRIED_CLIENTS, config.algorithm.batch_size
        if batch is None:
            raise ConfigError(
                f"--cluster with {clients:,} clients tries {TRIED_CLIENTS} of them: set algorithm.batch_size, so that "
                "a client's share of it is known"
            )
        algorithm = config.algorithm.with_settings(batch_size=max(1, round(batch * TRIED_CLIENTS / clients)))
        config = replace(config, algorithm=algorithm, federation=replace(config.federation, clients=TRIED_CLIENTS))
    one, *each = _tried(config, (Machines(1, 1), *machines), pieces, times, folder)
    return ClusterPlan(config, tried, one, tuple(zip(machines, each, strict=True)))


def _tried(
    config: Config, every: Sequence[Machines], pieces: int, times: float, folder: Path | None
) -> list[RoundTime]:
    """What rounds of a config would take on each of these."""
    config = replace(config, run=replace(config.run, threads=1))
    simulator = assemble(config, load(config, folder))[0].simulator
    require_possible(simulator)
    crew = TrialCrew(pieces)
    employ(simulator, crew)
    try_rounds(simulator, 1)  # the first one allocates
    crew.forget()
    began = time.process_time()
    try_rounds(simulator, _ROUNDS)
    seconds = time.process_time() - began
    return [crew.on(one.workers, one.cores, rounds=_ROUNDS, seconds=seconds, times=times) for one in every]
