"""Jobs on a Ray cluster, with the extra `ray`. Its machines must see the sweep's folder and the data under one path."""

from __future__ import annotations

import socket
from collections import deque
from collections.abc import Iterator
from typing import Any, Self

from crosshatch.errors import RunError, one_line
from crosshatch.sweeps.jobs import Ended, Event, Work, run_job

_LOOK_AROUND, _KNOCK_SECONDS = 0.25, 5.0
_CLIENT = "ray://"
_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_ON_LOOPBACK = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER=0"  # or Ray takes the address of the machine in the network instead
_REMEDY = "start one by `ray start --head` and give its address, or auto"


class RayCluster:
    """An executor that hands jobs to the cluster at `address`; `count` at a time, or as many as it has cores for."""

    def __init__(self, address: str, count: int | None = None) -> None:
        try:
            import ray
        except ImportError:
            message = "--ray needs Ray, which is not installed: pip install '.[ray]' in Crosshatch's folder"
            raise RunError(message) from None
        self._ray: Any = ray
        self._address = address
        self._count = count
        self._waiting: deque[Work] = deque()
        self._under_way: dict[Any, Work] = {}
        self._stopping = False

    def __enter__(self) -> Self:
        if self._address != "auto":
            self._knock()
        try:
            self._ray.init(self._address, log_to_driver=False, logging_level="ERROR")
        except (ConnectionError, RuntimeError, ValueError, OSError) as error:
            raise RunError(f"--ray {self._address}: {one_line(error)}: {_REMEDY}") from None
        return self

    def _knock(self) -> None:
        """Refuse an address at which nobody listens: Ray itself would try again for many minutes."""
        host, _, port = self._address.removeprefix(_CLIENT).rpartition(":")
        host = host.strip("[]")
        if not host or not (port.isascii() and port.isdecimal() and 0 < int(port) < 2**16):
            raise RunError(f"--ray {self._address}: an address is HOST:PORT or auto: {_REMEDY}")
        if host in _LOOPBACK and not self._address.startswith(_CLIENT):
            host = self._ray.util.get_node_ip_address()  # where Ray looks for it
        try:
            socket.create_connection((host, int(port)), timeout=_KNOCK_SECONDS).close()
        except OSError as error:
            bound = (
                f"; one bound to {_LOOPBACK[0]} needs {_ON_LOOPBACK} in the environment, here and where it is started"
            )
            raise RunError(
                f"--ray {self._address}: no cluster answers at {host}:{port} ({one_line(error)}): {_REMEDY}{bound}"
            ) from None

    def __exit__(self, *_: object) -> None:
        self._ray.shutdown()  # leaves the cluster, which goes on

    def submit(self, job: Work) -> None:
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

    def _ended(self, reference: Any, job: Work) -> Ended:
        try:
            ended: Ended = self._ray.get(reference)
        except self._ray.exceptions.RayError as error:
            if self._stopping:
                return Ended("stopped")
            last = (str(error).strip().splitlines() or [""])[-1]  # the others are the traceback
            return job.broken(f"on the cluster ({' '.join(last.split())})")
        return ended
