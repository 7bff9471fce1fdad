"""Who works jobs off: processes of this machine, each of which takes one after the other, or a Ray cluster.

A process that breaks down takes its own job with it and no other; one whose parent is gone ends at once, as by a kill:
what it had not finished is resumed from its checkpoint. The machines of a cluster, for which the extra `ray` is needed,
must see the sweep's folder and the data under one path.
"""

import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import forkserver, resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.context import BaseContext
from multiprocessing.process import BaseProcess
from types import ModuleType
from typing import Any, Self

from crosshatch.ray_connection import connect, find_ray
from crosshatch.sweeps.jobs import Ended, Event, Executor, LastSet, WorkItem, run_job

_LOOK_AROUND = 0.25  # seconds
_END_SECONDS = 5.0
# What libraries read when they are loaded: their own threads would fight with the other processes for the cores.
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "POLARS_MAX_THREADS")


def load_ahead() -> None:
    """Let libraries be loaded for processes that are started later, while this one does something else."""
    if hasattr(_context(), "set_forkserver_preload"):
        with _starting():
            forkserver.ensure_running()


@dataclass
class _WorkerProcess:
    process: BaseProcess
    pipe: Connection
    job: WorkItem | None = None


class LocalProcesses(Executor):
    """An executor with so many processes of this machine; workers of their runs are on the cluster at `ray`.

    Asked to stop, it asks those under way again and again: one that is about to begin does not listen yet.
    """

    def __init__(self, count: int, ray: str | None = None) -> None:
        super().__init__()
        self._count, self._ray = count, ray
        self._workers: list[_WorkerProcess] = []
        self._context = _context()

    def __exit__(self, *_: object) -> None:
        for worker in self._workers:
            worker.pipe.close()  # which ends a worker that waits for a job
            if worker.job is not None:
                worker.process.kill()
            worker.process.join(_END_SECONDS)
            if worker.process.exitcode is None:
                worker.process.kill()
                worker.process.join()
        self._workers.clear()

    def events(self) -> Iterator[Event | None]:
        """As they come from the processes."""
        while self._waiting or any(worker.job is not None for worker in self._workers):
            self._hand_out()
            busy = {worker.pipe: worker for worker in self._workers if worker.job is not None}
            for pipe in wait(list(busy), timeout=_LOOK_AROUND):
                assert isinstance(pipe, Connection)
                yield self._receive(busy[pipe])
            yield None
            if self._stopping:
                for worker in busy.values():
                    if worker.job is not None and worker.process.is_alive():
                        worker.process.terminate()

    def _hand_out(self) -> None:
        while self._waiting:
            idle = next((worker for worker in self._workers if worker.job is None), None)
            if idle is None:
                if len(self._workers) == self._count:
                    return
                idle = self._start()
                self._workers.append(idle)
            idle.job = self._waiting.popleft()
            with suppress(BrokenPipeError):  # it broke down since; `_receive` will notice
                idle.pipe.send(idle.job)

    def _start(self) -> _WorkerProcess:
        ours, theirs = self._context.Pipe()
        process = self._context.Process(target=_work, args=(theirs, self._ray), daemon=True)  # type: ignore[attr-defined]
        with _starting():
            process.start()
        theirs.close()
        return _WorkerProcess(process, ours)

    def _receive(self, worker: _WorkerProcess) -> Event:
        job = worker.job
        assert job is not None
        try:
            news: int | Ended = worker.pipe.recv()
        except (EOFError, ConnectionResetError):
            worker.process.join()
            worker.pipe.close()
            self._workers.remove(worker)
            news = Ended("stopped") if self._stopping else job.broken(_breakdown(worker.process.exitcode))
        if isinstance(news, Ended):
            worker.job = None
        return job, news


def _breakdown(code: int | None) -> str:
    if code is not None and code < 0:
        word = "the memory may have been too small" if -code == signal.SIGKILL else signal.strsignal(-code)
        return f"its process was ended by signal {-code} ({word})"
    return f"its process ended with exit code {code}"


def _work(pipe: Connection, ray: str | None) -> None:
    """What a process does. Signals count only while a run listens to them: see `stop_on_signals`."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: None)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    last = LastSet(ray=ray)
    try:
        while True:
            job: WorkItem = pipe.recv()
            pipe.send(run_job(job, pipe.send, last))
    except (EOFError, BrokenPipeError):  # nobody has another job, or waits for this one
        return
    except Exception:  # its traceback is where all is that the job has printed
        raise SystemExit(1) from None


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)  # now, as by a kill: whoever runs the sweep again wants the directory


def _context() -> BaseContext:
    """Processes forked from a server that has imported torch and run nothing; where there is none, fresh ones."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["crosshatch.runs.train"])
    return context


@contextmanager
def _starting() -> Iterator[None]:
    """Processes started meanwhile never hear of Ctrl-C, not even while they load libraries: this one stops them.

    They load these with one thread each, unless the environment says otherwise, and do not run the user's script once
    more: jobs need nothing of it.
    """
    blocks = hasattr(signal, "pthread_sigmask")
    if blocks:
        resource_tracker.ensure_running()  # which otherwise is started meanwhile, and lets the signal through again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT}) if blocks else set()
    main, added = sys.modules["__main__"], [name for name in _THREADS if name not in os.environ]
    sys.modules["__main__"] = ModuleType("__main__")
    os.environ.update(dict.fromkeys(added, "1"))
    try:
        yield
    finally:
        for name in added:
            del os.environ[name]
        sys.modules["__main__"] = main
        if blocks:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


class RayCluster(Executor):
    """An executor that hands jobs to the cluster at `address`; `count` at a time, or as many as it has cores for."""

    def __init__(self, address: str, count: int | None = None) -> None:
        super().__init__()
        self._ray: Any = find_ray("--ray")
        self._address, self._count = address, count
        self._under_way: dict[Any, WorkItem] = {}

    def __enter__(self) -> Self:
        connect(self._ray, self._address)
        return super().__enter__()

    def __exit__(self, *_: object) -> None:
        self._ray.shutdown()  # leaves the cluster, which goes on

    def stop(self) -> None:
        """A task that is cancelled gets the signal of Ctrl-C, to which a run listens."""
        super().stop()
        for reference in self._under_way:
            self._ray.cancel(reference, force=False)

    def events(self) -> Iterator[Event | None]:
        """The ends of jobs; how far they are is not told from afar."""
        while self._waiting or self._under_way:
            while self._waiting and (self._count is None or len(self._under_way) < self._count):
                job = self._waiting.popleft()
                # not again where a machine broke down: the same as for a process of this one
                task = self._ray.remote(num_cpus=job.threads, max_retries=0)(run_job)
                self._under_way[task.remote(job)] = job
            done, _ = self._ray.wait(list(self._under_way), timeout=_LOOK_AROUND)
            for reference in done:
                job = self._under_way.pop(reference)
                yield job, self._ended(reference, job)
            yield None

    def _ended(self, reference: Any, job: WorkItem) -> Ended:
        try:
            ended: Ended = self._ray.get(reference)
        except self._ray.exceptions.RayError as error:
            if self._stopping:
                return Ended("stopped")
            last = (str(error).strip().splitlines() or [""])[-1]  # the others are the traceback
            return job.broken(f"on the cluster ({' '.join(last.split())})")
        return ended
