"""A network between parties that can be made bad: connections cut, chunks delayed, stalled or swallowed."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from dataclasses import dataclass
from random import Random
from typing import Any

_CHUNK = 16_384


@dataclass
class Weather:
    """What happens to a chunk; may be changed at any time."""

    delay: float = 0.0  # seconds
    stall: float = 0.0  # how many of them are held
    held: float = 1.0  # seconds


class Proxies:
    """A port before each of some others, in a thread of its own."""

    def __init__(self, seed: int = 0) -> None:
        self.weather, self.random = Weather(), Random(seed)
        self.chunks = self.stalls = self.cuts = 0
        self._servers: list[asyncio.Server] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._writers: set[asyncio.StreamWriter] = set()
        self._deaf: set[asyncio.StreamWriter] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def before(self, port: int) -> int:
        """The port of a proxy before this one."""
        return int(self._do(self._serve(port)))

    def cut(self) -> None:
        """Break all connections, with all that is under way."""
        self.cuts += 1
        self._loop.call_soon_threadsafe(self._break)

    def swallow(self) -> None:
        """Nothing that is sent on the connections there are arrives any more, and nobody is told."""
        self._loop.call_soon_threadsafe(lambda: self._deaf.update(self._writers))

    def close(self) -> None:
        """The end of it."""
        self._do(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    def __enter__(self) -> Proxies:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _do(self, what: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(what, self._loop).result(10)

    def _break(self) -> None:
        for writer in self._writers:
            writer.transport.abort()

    async def _serve(self, port: int) -> int:
        async def connect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                there, onward = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                writer.transport.abort()
                return
            for source, sink in ((reader, onward), (there, writer)):
                task = self._loop.create_task(self._carry(source, sink))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)

        server = await asyncio.start_server(connect, "127.0.0.1", 0)
        self._servers.append(server)
        return int(server.sockets[0].getsockname()[1])

    async def _carry(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        """In order, each chunk when its time has come."""
        self._writers.add(sink)
        waiting: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()
        writing = self._loop.create_task(self._write(waiting, sink))
        try:
            while data := await source.read(_CHUNK):
                self.chunks += 1
                stalled = self.random.random() < self.weather.stall
                self.stalls += stalled
                waiting.put_nowait((self._loop.time() + self.weather.delay + stalled * self.weather.held, data))
            waiting.put_nowait((0.0, b""))
            await writing
        except OSError:
            pass
        finally:
            writing.cancel()
            self._writers.discard(sink)
            sink.transport.abort()

    async def _write(self, waiting: asyncio.Queue[tuple[float, bytes]], sink: asyncio.StreamWriter) -> None:
        while True:
            when, data = await waiting.get()
            await asyncio.sleep(max(0.0, when - self._loop.time()))
            if not data:
                return
            if sink not in self._deaf:
                sink.write(data)
                try:
                    await sink.drain()
                except OSError:
                    return

    async def _end(self) -> None:
        for server in self._servers:
            server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
