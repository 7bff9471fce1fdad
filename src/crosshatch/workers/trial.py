"""What a round would take on workers: rounds in this process note what pieces take, and what would travel."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from torch import Tensor

from crosshatch.task.task import Task
from crosshatch.workers.crew import KINDS, PIECES, Crew, Given, Spent
from crosshatch.workers.messages import write
from crosshatch.workers.requests import Request, Steps
from crosshatch.workers.shard import Shard

QUESTION_SECONDS = 0.001
"""Of a question to a worker and its answer, beside their bytes, between processes of one machine."""
BYTES_PER_SECOND = 8e8
"""At which the driver writes, sends and reads there; `benchmarks/workers.py` measures both."""


@dataclass(frozen=True)
class Question:
    """By piece the seconds of computing and the bytes that grow with the number of clients; and other bytes.

    `common` ones are told to all, `sums` over the clients of pieces come back.
    """

    seconds: Mapping[int, float]
    sizes: Mapping[int, int]
    common: int
    sums: int = 0


@dataclass(frozen=True)
class RoundTime:
    """Seconds of a round, as `Spent` divides them."""

    computing: float
    moving: float
    driver: float

    @property
    def seconds(self) -> float:
        return self.computing + self.moving + self.driver


@final
class TrialCrew(Crew):
    """Answers piece by piece, with one thread, and notes it all in processor time: others may be busy meanwhile."""

    def __init__(self, pieces: int = PIECES) -> None:
        self.pieces, self.spent = pieces, Spent()
        self.questions: list[Question] = []
        self.asked = 0.0  # seconds in all
        self._shard: Shard | None = None

    def begin(self, task: Task, rows: Given, names: Mapping[int, str]) -> None:  # noqa: ARG002
        self._shard = Shard(task, rows(range(KINDS * self.pieces)), threads=1)

    def ask(self, requests: Sequence[Request]) -> list[Tensor]:
        assert self._shard is not None
        began = time.process_time()
        common = {id(one): one for request in requests for one in request.common}
        numbers = {identity: number for number, identity in enumerate(common)}
        answers: dict[int, Tensor] = {}
        seconds: dict[int, float] = {}
        sizes: dict[int, int] = {}
        sums = 0
        for piece in sorted({request.piece for request in requests}):
            mine = [i for i, request in enumerate(requests) if request.piece == piece]
            written, _ = write([requests[i] for i in mine], numbers)
            before = time.process_time()
            found, _ = self._shard.answer([requests[i] for i in mine])
            seconds[piece] = time.process_time() - before
            added = sum(x.nbytes for i, x in zip(mine, found, strict=True) if _is_sum(requests[i]))
            sizes[piece] = len(written) + sum(one.nbytes for one in found) - added
            sums += added
            answers |= dict(zip(mine, found, strict=True))
        self.questions.append(Question(seconds, sizes, sum(one.nbytes for one in common.values()), sums))
        self.asked += time.process_time() - began
        return [answers[i] for i in range(len(requests))]

    def describe(self) -> dict[str, Any]:
        return {"workers": 0, "threads": 1, "pieces": self.pieces}

    def forget(self) -> None:
        """Drop what was noted of the rounds so far."""
        self.questions, self.asked = [], 0.0

    def on(self, workers: int, cores: int, *, rounds: int, seconds: float, times: float = 1.0) -> RoundTime:
        """A round on so many workers with so many cores each; these rounds took so long here.

        With so many `times` as many clients: computing, the driver's part and what is sent of each grow with them.
        """
        each = [self._by_worker(one, workers) for one in self.questions]
        computing = times * sum(max(_on_cores(own, cores) for own in by_worker) for by_worker in each)
        asked, sent = self.traffic(workers, times)
        moving = asked * QUESTION_SECONDS + sent / BYTES_PER_SECOND
        driver = times * max(0.0, seconds - self.asked)
        return RoundTime(computing / rounds, moving / rounds, driver / rounds)

    def traffic(self, workers: int, times: float = 1.0) -> tuple[int, float]:
        """How often so many workers would be asked, and the bytes that travel there and back."""
        asked, sent = 0, 0.0
        for one in self.questions:
            busy = sum(1 for own in self._by_worker(one, workers) if own)
            asked += busy
            sent += times * sum(one.sizes.values()) + busy * one.common + one.sums
        return asked, sent

    def _by_worker(self, one: Question, workers: int) -> list[list[float]]:
        """The seconds of each worker's pieces."""
        self.count = workers
        return [[one.seconds[piece] for piece in one.seconds if self.holder(piece) == n] for n in range(workers)]


def _is_sum(request: Request) -> bool:
    """Whether the answer is as long for many clients as for one."""
    return isinstance(request, Steps) and not request.keep


def _on_cores(pieces: Sequence[float], cores: int) -> float:
    """When the last piece is done if whoever is free takes the next one.

    >>> _on_cores([3.0, 1.0, 1.0, 2.0], 2)
    4.0
    """
    ends = np.zeros(cores)
    for seconds in pieces:
        ends[ends.argmin()] += seconds
    return float(ends.max())
