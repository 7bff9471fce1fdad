"""Workers as Ray actors: few of them, with many clients each. A worker that dies is started anew and asked again."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Self, final

import numpy as np
import torch
from torch import Tensor

from crosshatch.errors import RunError
from crosshatch.own_parts import loaded_files
from crosshatch.ray_connection import connect, find_ray, start_here
from crosshatch.simulator.allocator import keep_freed_memory
from crosshatch.task.task import Task
from crosshatch.workers.crew import PIECES, Crew, Spent
from crosshatch.workers.messages import Array, read, write
from crosshatch.workers.requests import Request
from crosshatch.workers.shard import Rows, Shard

_STARTS = 4  # of each worker beyond the first: one that dies again and again, for want of memory, ends the run
_SMALL = 2**16  # bytes: a tensor up to this is sent along, a larger one is put where all workers of a machine read it


@final
class Worker:
    """One actor: it holds a shard, reads requests and writes answers."""

    def __init__(self, given: Sequence[Any], threads: int) -> None:
        """`given`: where the task and the rows by silo and piece are read, anew after each start."""
        import ray

        task, rows = ray.get(list(given))
        keep_freed_memory()
        torch.set_num_threads(1)  # Ray sets its own idea of it
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the rows are shared and cannot be written; nobody does
            held = {key: torch.from_numpy(array) for key, array in rows.items()}
        self._task, self._shard = task, Shard(task, held, threads)
        self._common: dict[int, Tensor] = {}

    def versions(self) -> dict[str, str]:
        return versions()

    def answer(self, written: bytes, common: Mapping[int, Any]) -> tuple[list[Array], float]:
        """Answers as arrays, and the seconds they took; `common` has tensors by number, or where to read them."""
        import ray

        began = time.perf_counter()
        self._common = {number: one for number, one in self._common.items() if number in common}
        for number, one in common.items():
            if number not in self._common:
                self._common[number] = torch.tensor(ray.get(one) if isinstance(one, ray.ObjectRef) else one)
        answers, _ = self._shard.answer(read(written, self._task, self._common.__getitem__))
        return [one.numpy() for one in answers], time.perf_counter() - began


@final
class RayWorkers(Crew):
    """So many workers with some threads each: on a cluster of this machine alone, or on the one at `address`.

    They are there inside a `with` block, and `employ` has a simulation use them.

    >>> RayWorkers(2, threads=4).describe()
    {'workers': 2, 'threads': 4, 'pieces': 12}
    """

    def __init__(self, workers: int, *, threads: int = 1, address: str | None = None, pieces: int = PIECES) -> None:
        if workers > pieces:
            raise RunError(f"run.workers = {workers} for run.pieces = {pieces}: use at most {pieces} workers")
        self.pieces, self.spent = pieces, Spent()
        self._workers, self._threads, self._address = workers, threads, address
        self._ray: Any = None
        self._actors: list[Any] = []
        self._given: list[list[Any]] = []  # who begins anew reads it again
        self._has: list[str] = []  # whose rows, in words
        self.deaths = [0] * workers
        self._common: dict[int, tuple[int, Tensor, Any]] = {}  # of the round: by identity number, tensor, what is sent
        self._round: int | None = None
        self._numbers = 0

    def __enter__(self) -> Self:
        self._ray = find_ray("run.workers" if self._address is None else "--ray", here=self._address is None)
        if self._address is None:
            start_here(self._ray, self._workers * self._threads)
        else:
            connect(self._ray, self._address)
            cores = int(self._ray.cluster_resources().get("CPU", 0))
            if cores < self._workers * self._threads:
                self._ray.shutdown()
                raise RunError(
                    f"--ray {self._address}: the cluster has {cores} cores for {self._workers} workers with "
                    f"{self._threads} threads each: use fewer (run.workers, run.threads)"
                )
        return self

    def __exit__(self, *_: object) -> None:
        for actor in self._actors:
            self._ray.kill(actor)
        self._ray.shutdown()

    def begin(self, task: Task, rows: Rows, names: Mapping[int, str]) -> None:
        for file in loaded_files():  # a block or loss of the user's own travels with the task
            self._ray.cloudpickle.register_pickle_by_value(file)
        shared = self._ray.put(task)
        for n in range(self._workers):
            mine = {key: x.numpy() for key, x in rows.items() if self._worker(key[1]) == n}
            self._given.append([shared, self._ray.put(mine)])
            self._has.append("; ".join(names[piece] for piece in names if self._worker(piece) == n and names[piece]))
            self._actors.append(self._start(n))
        here = versions()
        for n, actor in enumerate(self._actors):
            for what, there in self._get(n, actor.versions.remote(), "versions", ()).items():
                if there != here[what]:
                    raise RunError(
                        f"worker {n + 1} has {what} {there}, here it is {here[what]}: install the same version there"
                    )
        self.spent = Spent()  # what it took to begin is not counted

    def _start(self, n: int) -> Any:
        options = {"num_cpus": self._threads, "scheduling_strategy": "SPREAD"}
        return self._ray.remote(**options)(Worker).remote(self._given[n], self._threads)

    def _worker(self, piece: int) -> int:
        """Who holds a piece."""
        return piece * self._workers // self.pieces

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
            mine = [i for i, request in enumerate(requests) if self._worker(request.piece) == n]
            if mine:
                written, mentioned = write([requests[i] for i in mine], by_identity)
                told = written, {number: by_number[number] for number in mentioned}
                asked.append((n, mine, told, actor.answer.remote(*told)))
        answers: dict[int, Tensor] = {}
        seconds = [0.0] * (self._workers - len(asked))
        for n, mine, told, under_way in asked:
            arrays, took = self._get(n, under_way, "answer", told)
            answers.update(zip(mine, map(torch.tensor, arrays), strict=True))
            seconds.append(took)
        self.spent.add(began, seconds)
        return [answers[i] for i in range(len(requests))]

    def _get(self, n: int, under_way: Any, method: str, told: Sequence[Any]) -> Any:
        """What a worker answers; one that dies meanwhile is started anew, reads its rows and is asked again."""
        while True:
            try:
                return self._ray.get(under_way)
            except self._ray.exceptions.RayTaskError as error:
                raise error.cause from None
            except self._ray.exceptions.RayActorError as error:
                self.deaths[n] += 1
                if self.deaths[n] > _STARTS:
                    why = (str(error).strip().splitlines() or [""])[-1].strip()
                    raise RunError(
                        f"worker {n + 1} died {self.deaths[n]} times ({why}); it has {self._has[n]}: if its machine is "
                        "out of memory, set more run.workers, fewer run.threads or a smaller algorithm.batch_size"
                    ) from None
            self._actors[n] = self._start(n)
            under_way = getattr(self._actors[n], method).remote(*told)

    def describe(self) -> dict[str, Any]:
        died = {"deaths": sum(self.deaths)} if any(self.deaths) else {}
        return {"workers": self._workers, "threads": self._threads, "pieces": self.pieces} | died


def versions() -> dict[str, str]:
    """Of what decides numbers."""
    try:
        own = version("crosshatch")
    except PackageNotFoundError:  # run from the source without being installed
        own = "unknown"
    return {"crosshatch": own, "torch": str(torch.__version__), "numpy": np.__version__}
