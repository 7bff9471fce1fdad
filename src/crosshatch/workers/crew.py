"""Who answers requests: the threads of this process, or workers elsewhere."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar, final

from torch import Tensor

from crosshatch.task.task import Task
from crosshatch.workers.requests import Request
from crosshatch.workers.shard import Rows, Shard

T = TypeVar("T")
Given = Callable[[Collection[int]], Rows]
"""The rows of some pieces, at hand or read when they are asked for."""

PIECES = 12
"""Of each silo's clients, if nobody says otherwise: one, two, three, four, six or twelve workers have as many each."""


KINDS = 3
"""Of pieces: training, test and validation samples."""


@dataclass
class Spent:
    """Seconds of all requests so far: the slowest worker's computing, the others' waiting for it on average, the rest.

    >>> list(Spent(computing=3.0, waiting=0.5, moving=0.25).described())
    ['computing', 'waiting', 'moving', 'driver']
    """

    since: float = field(default_factory=time.perf_counter)
    computing: float = 0.0
    waiting: float = 0.0
    moving: float = 0.0

    def add(self, began: float, each: Sequence[float]) -> None:
        """Of one request, from when it was made until now, and how long each worker computed."""
        slowest = max(each)
        self.computing += slowest
        self.waiting += slowest - sum(each) / len(each)
        self.moving += max(0.0, time.perf_counter() - began - slowest)

    def described(self) -> dict[str, float]:
        """The same with what is left of the time until now: what this process did while nobody was asked."""
        driver = time.perf_counter() - self.since - self.computing - self.moving
        return {
            "computing": self.computing, "waiting": self.waiting, "moving": self.moving, "driver": max(0.0, driver)
        }  # fmt: skip


class Crew(ABC):
    """Workers that hold pieces of the clients' rows and keep them."""

    pieces: int
    spent: Spent
    count: int = 1  # of those who do something at the same time
    warn: Callable[[str], None] | None = None  # is told of what a run survives

    def holder(self, piece: int) -> int:
        """Who holds a piece; those of test and validation samples are numbered on."""
        return piece % self.pieces * self.count // self.pieces

    def held_by(self, worker: int) -> list[int]:
        """The pieces that one worker holds."""
        return [piece for piece in range(KINDS * self.pieces) if self.holder(piece) == worker]

    def do(self, work: Sequence[Callable[[], T]]) -> list[T]:
        """What needs no rows that somebody holds, each by another worker, or all by this process."""
        return [one() for one in work]

    @abstractmethod
    def begin(self, task: Task, rows: Given, names: Mapping[int, str]) -> None:
        """Hand out the rows of every silo and piece; `names` says of each piece whose rows it has."""

    @abstractmethod
    def ask(self, requests: Sequence[Request]) -> list[Tensor]:
        """The answers in the order of the requests."""

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """Who they are, for the record."""


@final
class InlineWorkers(Crew):
    """The same pieces, and so the same bits, computed in this process by some threads.

    >>> InlineWorkers(threads=2).describe()
    {'workers': 0, 'threads': 2, 'pieces': 12}
    """

    def __init__(self, threads: int = 1, pieces: int = PIECES) -> None:
        self.pieces, self.spent, self._threads = pieces, Spent(), threads
        self._shard: Shard | None = None

    def begin(self, task: Task, rows: Given, names: Mapping[int, str]) -> None:  # noqa: ARG002
        self._shard, self.spent = Shard(task, rows(range(KINDS * self.pieces)), self._threads), Spent()

    def ask(self, requests: Sequence[Request]) -> list[Tensor]:
        assert self._shard is not None
        began = time.perf_counter()
        answers, seconds = self._shard.answer(requests)
        self.spent.add(began, [seconds])
        return answers

    def describe(self) -> dict[str, Any]:
        return {"workers": 0, "threads": self._threads, "pieces": self.pieces}
