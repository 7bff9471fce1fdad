"""The line over gRPC with mutual TLS, held to what any line must do."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from crosshatch.errors import MessageError, RunError
from crosshatch.parties.line import Line, Name
from crosshatch.runtime.streams import Streams
from crosshatch.testing.check_line import LINE_CHECKS, Lines
from tests.runtime.grpc_lines import GrpcLines


@pytest.mark.parametrize("check", LINE_CHECKS)
def test_over_grpc(check: Callable[[Lines], None]) -> None:
    check(GrpcLines())


def test_last_words_arrive_though_the_other_side_reads_slowly(monkeypatch: pytest.MonkeyPatch) -> None:
    lines, reading = GrpcLines(), Streams._read

    async def slowly(streams: Streams, peer: Name, read: Callable[[], Awaitable[object]]) -> None:
        async def later() -> object:
            await asyncio.sleep(0.02 if peer == "client" else 0)
            return await read()

        await reading(streams, peer, later)

    def hub(line: Line) -> None:
        line.send("client", (0, "share", 0), b"")
        line.recv("client", (1, "share", 0))

    def client(line: Line) -> None:
        me = lines.parties["client"]
        line.recv("a-hub", (0, "share", 0))  # they are connected
        for n in range(30):
            line.send("a-hub", (0, "share", n), b"")
            asyncio.run_coroutine_threadsafe(asyncio.sleep(0.001), me.streams._loop).result()  # so that it goes alone
        me.line.fail(RunError("its disk is full"))
        asyncio.run_coroutine_threadsafe(me.streams.close(), me.streams._loop).result(30)

    monkeypatch.setattr(Streams, "_read", slowly)
    with pytest.raises(MessageError, match="client has stopped the run: its disk is full"):
        lines.run({"a-hub": hub, "client": client})
