"""Jobs on a Ray cluster, with the extra `ray`. Its machines must see the sweep's folder and the data under one path."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any, Self

from crosshatch.ray_connection import connect, find_ray
from crosshatch.sweeps.jobs import Ended, Event, WorkItem, run_job

_LOOK_AROUND = 0.25


class RayCluster:
    """An executor that hands jobs to the cluster at `address`; `count` at a time, or as many as it has cores for."""

    def __init__(self, address: str, count: int | None = None) -> None:
        self._ray: Any = find_ray("--ray")
        self._address = address
        self._count = count
        self._waiting: deque[WorkItem] = deque()
        self._under_way: dict[Any, WorkItem] = {}
        self._stopping = False

    def __enter__(self) -> Self:
        connect(self._ray, self._address)
        return self

    def __exit__(self, *_: object) -> None:
        self._ray.shutdown()  # leaves the cluster, which goes on

    def submit(self, job: WorkItem) -> None:
        """Behind those that wait already."""
        self._waiting.append(job)

    def stop(self) -> None:
        """A task that is cancelled gets the signal of Ctrl-C, to which a run listens."""
        self._stopping = True
        self._waiting.clear()
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
