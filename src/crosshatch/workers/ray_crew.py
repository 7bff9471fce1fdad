"""Workers as Ray actors: few of them, with many clients each. A worker that dies is started anew and asked again."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Self, final

import numpy as np
import torch
from torch import Tensor

from crosshatch.errors import CrosshatchError, RunError, one_line, require_whole
from crosshatch.own_parts import loaded_files
from crosshatch.ray_connection import connect, find_ray, start_here
from crosshatch.simulator.allocator import keep_freed_memory
from crosshatch.task.task import Task
from crosshatch.workers.apart.reading import RowsToRead
from crosshatch.workers.crew import PIECES, Crew, Given, Spent, T
from crosshatch.workers.messages import Array, read, write
from crosshatch.workers.requests import Request
from crosshatch.workers.shard import Shard

_STARTS = 4  # of each worker beyond the first: one that dies again and again, for want of memory, ends the run
_LOOK_AROUND = 30.0  # seconds
_IDLE = 250 * 10**6  # bytes that a worker takes by itself, beside what processes share
_SMALL = 2**16  # bytes: a tensor up to this is sent along, a larger one is put where all workers of a machine read it


@final
class Worker:
    """One actor: it holds a shard, reads requests and writes answers."""

    def __init__(self, threads: int) -> None:
        self._threads = threads
        self._common: dict[int, Tensor] = {}

    def begin(self, task: Task, rows: Mapping[tuple[int, int], Array] | RowsToRead, pieces: Collection[int]) -> None:
        """What it has from now on, or where to read it: the first thing that it is told of a simulation."""
        self._given = task, rows, pieces
        vars(self).pop("_held", None)
        self._common.clear()

    @cached_property
    def _held(self) -> tuple[Task, Shard]:
        task, rows, pieces = self._given
        del self._given
        keep_freed_memory()
        torch.set_num_threads(1)  # Ray sets its own idea of it
        if isinstance(rows, RowsToRead):
            return task, Shard(task, rows(pieces), self._threads)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the rows are shared and cannot be written; nobody does
            held = {key: torch.from_numpy(array) for key, array in rows.items()}
        return task, Shard(task, held, self._threads)

    def read(self) -> None:
        """Returns when all rows are there."""
        _ = self._held

    def versions(self) -> dict[str, str]:
        return versions()

    def answer(self, written: bytes, common: Mapping[int, Any]) -> tuple[list[Array], float]:
        """Answers as arrays, and the seconds they took; `common` has tensors by number, or where to read them."""
        import ray

        task, shard = self._held
        began = time.perf_counter()
        self._common = {number: one for number, one in self._common.items() if number in common}
        for number, one in common.items():
            if number not in self._common:
                self._common[number] = torch.tensor(ray.get(one) if isinstance(one, ray.ObjectRef) else one)
        answers, _ = shard.answer(read(written, task, self._common.__getitem__))
        return [one.numpy() for one in answers], time.perf_counter() - began


@final
class RayWorkers(Crew):
    """So many workers with some threads each: on a cluster of this machine alone, or on the one at `address`.

    They are there inside a `with` block, and `employ` has a simulation use them.

    >>> RayWorkers(2, threads=4).describe()
    {'workers': 2, 'threads': 4, 'pieces': 12}
    """

    def __init__(self, workers: int, *, threads: int = 1, address: str | None = None, pieces: int = PIECES) -> None:
        for name, value in (("workers", workers), ("threads", threads), ("pieces", pieces)):
            require_whole(f"run.{name}", value, least=1)
        if workers > pieces:
            raise RunError(f"run.workers = {workers} for run.pieces = {pieces}: use at most {pieces} workers")
        self.pieces, self.spent = pieces, Spent()
        self.count, self._threads, self._address = workers, threads, address
        self._ray: Any = None  # from when somebody is first asked
        self._actors: list[Any] = []
        self._task: Any = None  # where it is read
        self._rows: Given | None = None  # who begins anew is told again
        self._put: dict[int | None, Any] = {}  # by worker where its rows are, or for all where rows are read
        self._has: list[str] = []  # whose rows, in words
        self.deaths = [0] * workers
        self._common: dict[int, tuple[int, Tensor, Any]] = {}  # of the round: by identity number, tensor, what is sent
        self._round: int | None = None
        self._numbers = 0

    def __enter__(self) -> Self:
        return self

    def _connect(self) -> None:
        if self._ray is not None:
            return
        ray = find_ray("run.workers" if self._address is None else "--ray", here=self._address is None)
        if self._address is None:
            self._require_memory()
            start_here(ray, self.count * self._threads)
        else:
            connect(ray, self._address)
        self._ray = ray
        self._require_cores()

    def _require_memory(self) -> None:
        """Refuse more processes than this machine takes even before they have rows."""
        room = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        if self.count * _IDLE > room:
            raise RunError(
                f"run.workers = {self.count}: each takes {_IDLE / 1e9:.2g} GB before it has rows, and this machine has "
                f"{room / 1e9:.3g} GB: use at most {max(1, room // _IDLE)}, or a cluster by --ray"
            )

    def _require_cores(self) -> None:
        """Refuse a cluster on which workers would wait for a core without end, from the start or as machines leave."""
        cores, asked = int(self._ray.cluster_resources().get("CPU", 0)), self.count * self._threads
        if cores < asked:
            raise RunError(
                f"--ray {self._address}: the cluster has {cores} cores for {self.count} workers with {self._threads} "
                "threads each: use fewer (run.workers, run.threads), or add a machine"
            )

    def __exit__(self, *_: object) -> None:
        if self._ray is not None:
            for actor in self._actors:
                self._ray.kill(actor)
            self._ray.shutdown()

    def do(self, work: Sequence[Callable[[], T]]) -> list[T]:
        self._connect()
        ask = self._ray.remote(num_cpus=self._threads, scheduling_strategy="SPREAD")(_do)
        found = []
        for n, answer in enumerate([ask.remote(one) for one in work]):
            try:
                with self._naming(n):
                    found.append(self._ray.get(answer))
            except (self._ray.exceptions.WorkerCrashedError, self._ray.exceptions.OutOfMemoryError) as error:
                why = f"worker {n + 1} died while it read rows ({one_line(error)})"
                raise RunError(f"{why}; {self._sparing(n)}") from None
        return found

    def begin(self, task: Task, rows: Given, names: Mapping[int, str]) -> None:
        self._connect()
        for file in loaded_files():  # a block or loss of the user's own travels with the task
            self._ray.cloudpickle.register_pickle_by_value(file)
        self._task, self._rows, self._put, self._has = self._ray.put(task), rows, {}, []
        for n in range(self.count):
            self._has.append("; ".join(names[piece] for piece in names if self.holder(piece) == n and names[piece]))
        here = self._actors  # since another simulation, which they forget
        self._actors = [self._told(n, here[n]) if here else self._start(n) for n in range(self.count)]
        for n in range(self.count):
            self._require_versions(n)
        for n, under_way in enumerate([actor.read.remote() for actor in self._actors]):
            self._get(n, under_way, "read", ())
        self.spent = Spent()  # what it took to begin is not counted

    def _require_versions(self, n: int) -> None:
        """Refuse a worker whose numbers may be others."""
        own = versions()
        for what, there in self._get(n, self._actors[n].versions.remote(), "versions", ()).items():
            if there != own[what]:
                raise RunError(
                    f"worker {n + 1} has {what} {there}, here it is {own[what]}: install the same version there"
                )

    def _start(self, n: int) -> Any:
        options = {"num_cpus": self._threads, "scheduling_strategy": "SPREAD"}
        return self._told(n, self._ray.remote(**options)(Worker).remote(self._threads))

    def _told(self, n: int, actor: Any) -> Any:
        """An actor that is told what it has."""
        actor.begin.remote(self._task, self._given(n), self.held_by(n))
        return actor

    def _given(self, n: int) -> Any:
        """The rows of a worker, put where it can read them; or what all need to know who read rows themselves."""
        apart = isinstance(self._rows, RowsToRead)
        key = None if apart else n
        if key not in self._put:
            assert self._rows is not None
            rows = self._rows if apart else {key: x.numpy() for key, x in self._rows(self.held_by(n)).items()}
            self._put[key] = self._ray.put(rows)
        return self._put[key]

    @contextmanager
    def _naming(self, n: int) -> Iterator[None]:
        """Have an error say which worker it is from."""
        try:
            yield
        except self._ray.exceptions.RayTaskError as error:
            cause = error.cause
            if isinstance(cause, CrosshatchError):
                raise type(cause)(f"worker {n + 1}: {cause}") from None
            if isinstance(cause, MemoryError) or "can't allocate memory" in str(cause):
                raise RunError(f"worker {n + 1} is out of memory; {self._sparing(n)}") from None
            raise cause from None

    def _sparing(self, n: int) -> str:
        """Whose rows it has, and what needs less memory."""
        whose = f"it has {self._has[n]}: " if self._has else ""
        return (
            f"{whose}if its machine is out of memory, set more run.workers, fewer run.threads or a smaller "
            "algorithm.batch_size"
        )

    def ask(self, requests: Sequence[Request]) -> list[Tensor]:
        began = time.perf_counter()
        if requests and requests[0].round != self._round:
            self._round = requests[0].round
            self._common.clear()
        for one in (tensor for request in requests for tensor in request.common):
            if id(one) not in self._common:
                self._numbers += 1
                sent = one.numpy() if one.nbytes <= _SMALL else self._ray.put(one.numpy())
                self._common[id(one)] = self._numbers, one, sent
        by_identity = {identity: number for identity, (number, _, _) in self._common.items()}
        by_number = {number: sent for number, _, sent in self._common.values()}
        asked = []
        for n, actor in enumerate(self._actors):
            mine = [i for i, request in enumerate(requests) if self.holder(request.piece) == n]
            if mine:
                written, mentioned = write([requests[i] for i in mine], by_identity)
                told = written, {number: by_number[number] for number in mentioned}
                asked.append((n, mine, told, actor.answer.remote(*told)))
        answers: dict[int, Tensor] = {}
        seconds = [0.0] * (self.count - len(asked))
        for n, mine, told, under_way in asked:
            arrays, took = self._get(n, under_way, "answer", told)
            answers.update(zip(mine, map(torch.tensor, arrays), strict=True))
            seconds.append(took)
        self.spent.add(began, seconds)
        return [answers[i] for i in range(len(requests))]

    @property
    def _deaths(self) -> tuple[type[Exception], ...]:
        """By what it is known that a worker is gone, or its answer with its machine."""
        known = self._ray.exceptions
        return known.RayActorError, known.NodeDiedError, known.OutOfMemoryError, known.ObjectLostError

    def _get(self, n: int, under_way: Any, method: str, told: Sequence[Any]) -> Any:
        """What a worker answers; one that dies meanwhile is started anew, reads its rows and is asked again."""
        while True:
            try:
                with self._naming(n):
                    while not self._ray.wait([under_way], timeout=_LOOK_AROUND)[0]:
                        self._require_cores()
                    return self._ray.get(under_way)
            except self._deaths as error:
                self.deaths[n] += 1
                why = (str(error).strip().splitlines() or [""])[-1].strip()
                if self.deaths[n] > _STARTS:
                    raise RunError(f"worker {n + 1} died {self.deaths[n]} times ({why}); {self._sparing(n)}") from None
            if self.warn is not None:
                self.warn(f"worker {n + 1} died ({why}): it is started anew, reads its rows and is asked again")
            self._ray.kill(self._actors[n])  # it may only be out of reach
            self._actors[n] = self._start(n)
            if method != "versions":  # it may be on another machine
                self._require_versions(n)
            under_way = getattr(self._actors[n], method).remote(*told)

    def describe(self) -> dict[str, Any]:
        died = {"deaths": sum(self.deaths)} if any(self.deaths) else {}
        return {"workers": self.count, "threads": self._threads, "pieces": self.pieces} | died


def _do(work: Callable[[], T]) -> T:
    torch.set_num_threads(1)
    return work()


def versions() -> dict[str, str]:
    """Of what decides numbers."""
    try:
        own = version("crosshatch")
    except PackageNotFoundError:  # run from the source without being installed
        own = "unknown"
    return {"crosshatch": own, "torch": str(torch.__version__), "numpy": np.__version__}
