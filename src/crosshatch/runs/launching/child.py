"""A process of a launched run: `python -m crosshatch.runs.launching.child FOLDER`.

It ends with code 0 after the last round, with 2 and a line where it cannot go on, and when whoever started it is gone.
Who started it writes to its standard input: `hold` has it end no further round than those begun and write their number
into the file `held`, `until 57` has it end after 57 rounds.
"""

import asyncio
import os
import sys
import threading
import time
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from queue import Queue

from crosshatch.runtime.handshakes import GrpcLog
from crosshatch.runtime.kernels import keep_kernels, pin_kernels

if __name__ == "__main__":
    pin_kernels(Path(sys.argv[1]))  # before torch chooses
    _grpc = GrpcLog()  # before grpc is imported

import msgspec
import torch

from crosshatch.data.federated import FederatedData
from crosshatch.errors import CrosshatchError, one_line
from crosshatch.parties.evaluation.with_evaluation import EvaluationPlan
from crosshatch.parties.line import Name
from crosshatch.parties.parties_of import parties_of
from crosshatch.parties.party import Party
from crosshatch.runs.config import Config, read_config
from crosshatch.runs.evaluating.lines import note_what_is_sent
from crosshatch.runs.evaluating.own_test_rows import read_briefing, read_held
from crosshatch.runs.launching.own_rows import read_share
from crosshatch.runs.launching.process_plan import CONFIG, HELD, REFUSED, PartyProgress, ProcessPlan
from crosshatch.runs.launching.text_files import what_is_agreed
from crosshatch.runtime.identity import Identity
from crosshatch.runtime.limit import Limit
from crosshatch.runtime.process import Course, Process, Seat
from crosshatch.runtime.store import Pace, write_whole
from crosshatch.simulator.allocator import keep_freed_memory
from crosshatch.task.build_task import build_task
from crosshatch.task.losses import Loss

_OFTEN = 0.2  # seconds between two words to whoever started this


def main(home: Path, grpc: GrpcLog) -> int:
    """Run the parties of a folder; the exit code."""
    torch.set_num_threads(1)
    keep_freed_memory()  # blocks come and go with every message
    limits: Queue[Limit] = Queue()
    threading.Thread(target=_follow_parent, args=(home, limits), daemon=True).start()
    try:
        plan = ProcessPlan.read(home)
        asyncio.run(_run(plan, home, limits, grpc))
    except CrosshatchError as error:
        _say(one_line(error))
        return REFUSED
    return 0


async def _run(plan: ProcessPlan, home: Path, limits: Queue[Limit], grpc: GrpcLog) -> None:
    settings = read_config(home / CONFIG).run
    course = Course(
        plan.run, what_is_agreed(home, plan.rounds), plan.rounds, lambda _: plan.longest, frozenset(plan.keep),
        settings.wait_seconds, Pace(*settings.store_pace), tuple(plan.again), plan.anywhere,
    )  # fmt: skip
    parties = parties_in(home, [one.name for one in plan.seats])
    seats = []
    for one in plan.seats:
        peers = {name: certificate.encode() for name, certificate in one.peers.items()}
        own = home / one.name
        seats.append(Seat(parties[one.name], Identity.read(own), own, peers, one.inside, one.dials, one.port))
    process = Process(seats, course, _say)
    grpc.follow(process.complaints)
    keep_kernels(home, process.fingerprint["kernels"])
    limits.put(process.limit)
    threading.Thread(target=_tell, args=(process,), daemon=True).start()
    await process.run()


def parties_in(home: Path, names: Collection[Name]) -> dict[Name, Party]:
    """Those of this folder, from its share."""
    config = read_config(home / CONFIG)
    precision: torch.dtype = getattr(torch, config.run.precision)
    share, seed = read_share(home, precision), config.run.seed
    task = build_task(share.data, config.model, seed=seed, elsewhere=share.elsewhere)
    evaluation = _evaluation(home, config, share.data, task.loss)
    parties = parties_of(
        share.data, replace(task, optimiser=config.optimiser), config.algorithm, seed=seed, codecs=config.codecs,
        precision=precision, steps="solved", only=names, beforehand=share.beforehand, evaluation=evaluation,
    )  # fmt: skip
    for name, party in parties.items():
        if party.follows is None:  # what others send, their hub counts
            note_what_is_sent(party, home / name)
    return parties


def _evaluation(home: Path, config: Config, data: FederatedData, loss: Loss) -> EvaluationPlan:
    """When and on what these parties evaluate, with the judge where one of them is that."""
    held, validation = read_held(home, data, data.silos[0].train.dtype)
    judge = None
    for folder in home.iterdir():
        briefing = read_briefing(folder)
        if briefing is not None:
            from crosshatch.runs.evaluating.judge import RunJudge  # which others need not load

            judge = RunJudge(config, loss, folder, briefing)
    return EvaluationPlan(
        held, validation, config.evaluate.every, config.run.rounds, config.evaluate.train_samples, judge
    )


def _tell(process: Process) -> None:
    """For as long as the process lives: a line on standard output, now and then."""
    pause = threading.Event()
    while True:
        try:
            os.write(1, msgspec.json.encode(told_by(process)) + b"\n")
        except OSError:
            return  # nobody listens any more
        pause.wait(_OFTEN)


def told_by(process: Process) -> dict[Name, PartyProgress]:
    """Its parties as they are now."""
    found = {}
    for name, life in process.lives.items():
        waits = life.line.waits_for
        told = PartyProgress(life.party.round, life.party.meter.bytes)
        if waits is not None:
            told.waits_for, told.seconds = waits[0], round(time.monotonic() - life.line.waits_since, 1)
        found[name] = told
    return found


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


def _follow_parent(home: Path, limits: Queue[Limit]) -> None:
    """Standard input is a pipe from whoever started this: it ends when that process does, however it ends."""
    said = b""
    while some := os.read(0, 100):  # a reader of Python's own would hold a lock when this process ends
        *lines, said = (said + some).split(b"\n")
        for line in lines:
            limit = limits.get()
            limits.put(limit)
            if line == b"hold":
                write_whole(home / HELD, str(limit.hold()).encode())
            elif line.startswith(b"until "):
                limit.until(int(line.split()[1]))
    os._exit(3)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), _grpc))
