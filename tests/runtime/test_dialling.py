"""Whoever dials does not wait long for somebody who never answers."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from crosshatch.runtime.complaints import Complaints
from crosshatch.runtime.identity import Identity, Peers
from crosshatch.runtime.streams import Streams


async def _relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()
    writer.close()


def test_a_handshake_that_is_swallowed_is_given_up_soon() -> None:
    """The first connection leads nowhere, as behind a firewall that drops what it does not know."""

    async def dial() -> None:
        hub, client, there = Identity.make("hub-0-0"), Identity.make("client-0-0-0"), asyncio.Event()
        serving, dialling = (
            Streams(
                me, Peers({peer.name: peer.certificate}), lambda _: there.set(), lambda *_: None, print,
                lambda *_: 1000, Complaints(print),
            )
            for me, peer in ((hub, client), (client, hub))
        )  # fmt: skip
        port, ended, first = await serving.serve("127.0.0.1", 0), asyncio.Event(), True

        async def on_connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            nonlocal first
            if first:
                first = False
                await ended.wait()
            else:
                inner = await asyncio.open_connection("127.0.0.1", port)
                await asyncio.gather(_relay(reader, inner[1]), _relay(inner[0], writer))
            writer.close()

        between = await asyncio.start_server(on_connection, "127.0.0.1", 0)
        dialling.dial("hub-0-0", f"127.0.0.1:{between.sockets[0].getsockname()[1]}")
        await asyncio.wait_for(there.wait(), 15)  # grpc's own patience is 20 seconds
        ended.set()
        await dialling.close()
        await serving.close()
        between.close()

    asyncio.run(dial())
