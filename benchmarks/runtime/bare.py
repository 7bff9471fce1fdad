"""A party's messages of a round over grpc's streams alone: no frames, no threads, no mail; what gRPC itself takes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.runtime.noted import Said
from crosshatch.parties.line import Name
from crosshatch.runtime.envelope import FRAME
from crosshatch.runtime.identity import Identity, Peers
from crosshatch.runtime.secure import grpc, server_credentials

_SERVICE, _METHOD = "crosshatch.Party", "Stream"


async def run_bare(
    home: Path, peers: dict[Name, bytes], dials: dict[Name, str], port: int | None, said: Sequence[Said],
    rounds: int, turns: int, gate: Callable[[], None],
) -> None:  # fmt: skip
    """All turns, when everybody is there; between two `gate` is called."""
    me, known = Identity.read(home), Peers(peers)
    streams: dict[Name, asyncio.Future[Any]] = {peer: asyncio.get_running_loop().create_future() for peer in peers}
    over = asyncio.Event()

    async def on_stream(_: object, context: Any) -> None:
        shown = context.auth_context()
        peer = known.who(shown["x509_pem_cert"][0], shown["x509_common_name"][0].decode())
        assert peer is not None
        streams[peer].set_result(context)
        await over.wait()

    server = grpc.aio.server()
    if port is not None:
        handler = grpc.stream_stream_rpc_method_handler(on_stream)
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(_SERVICE, {_METHOD: handler}),))
        server.add_secure_port(f"127.0.0.1:{port}", server_credentials(me, known))
        await server.start()
    for peer, address in dials.items():
        channel = grpc.aio.secure_channel(
            address,
            grpc.ssl_channel_credentials(peers[peer], me.key, me.certificate),
            options=[("grpc.ssl_target_name_override", peer)],
        )
        call = channel.stream_stream(f"/{_SERVICE}/{_METHOD}")(wait_for_ready=True)
        await call.wait_for_connection()
        streams[peer].set_result(call)
    there = {peer: await one for peer, one in streams.items()}
    for _ in range(turns):
        gate()
        for _ in range(rounds):
            await _round(there, said)
    gate()
    over.set()


async def _round(there: dict[Name, Any], said: Sequence[Said]) -> None:
    for way, peer, size in said:
        for begin in range(0, max(1, size), FRAME):
            if way == "to":
                await there[peer].write(bytes(min(FRAME, size - begin)))
            else:
                await there[peer].read()
