"""Real processes that train while others try to get in: undisturbed, with bounded memory, and with a line each."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from resource import RLIMIT_NOFILE, getrlimit

import msgspec
import pytest

from crosshatch.parties.recovery.mail import Frame, FrameKind
from crosshatch.runtime.envelope import pack
from crosshatch.runtime.identity import Identity
from crosshatch.runtime.secure import grpc
from tests.runtime.fleet import Fleet
from tests.runtime.soak import resident
from tests.runtime.test_intruders import METHOD, minted, other

HUB, CLIENT = "hub-0-1", "client-0-1-0"
IDLE = min(1000, getrlimit(RLIMIT_NOFILE)[0] // 2)  # connections
ROOM = 100  # MB


def knock(folder: Path, port: int, me: Identity | None, sends: list[bytes]) -> grpc.StatusCode:
    """How a stream to the hub ends, for somebody with this identity."""
    pair = (None, None) if me is None else (me.key, me.certificate)
    options = [("grpc.ssl_target_name_override", HUB), ("grpc.enable_retries", 0)]
    credentials = grpc.ssl_channel_credentials((folder / f"{HUB}.pem").read_bytes(), *pair)
    with grpc.secure_channel(f"127.0.0.1:{port}", credentials, options) as channel:
        call = channel.stream_stream(METHOD)(iter(sends), timeout=10)
        try:
            list(call)
        except grpc.RpcError as error:
            code: grpc.StatusCode = error.code()
            return code
    return grpc.StatusCode.OK


@pytest.mark.slow
def test_a_run_goes_on_undisturbed(tmp_path: Path) -> None:
    with Fleet("TDCD", tmp_path, rounds=10_000_000) as fleet:
        fleet.start()
        fleet.wait(lambda: fleet.stored(HUB) >= 5)
        port, before = fleet.setup.ports[HUB], resident(fleet.pid(HUB))
        client = Identity.read(tmp_path / CLIENT)
        idle = [socket.create_connection(("127.0.0.1", port), 10) for _ in range(IDLE)]
        idle[0].sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        greeting = list(pack([Frame(FrameKind.GREETING, 0)]))
        strangers = (
            None,
            Identity.make(CLIENT),
            minted(client, "server-0-0"),
            Identity.read(tmp_path / "client-0-0-0"),  # of another silo
        )
        for me in strangers:
            assert knock(tmp_path, port, me, greeting) == grpc.StatusCode.UNAVAILABLE
        unheard = list(pack([Frame(FrameKind.MESSAGE, 0, (round, "share", 0), bytes(1000)) for round in (0, 7, 10**6)]))
        long = msgspec.msgpack.encode([[1, 0, [5, "share", 0], 900_000, n * 1000, bytes(1000)] for n in range(500)])
        for _ in range(12):
            knock(tmp_path, port, client, [os.urandom(50)])
            knock(tmp_path, port, client, [other(length=10_000_000_000)])
        knock(tmp_path, port, client, unheard)  # before a greeting nothing is listened to
        knock(tmp_path, port, client, [long])  # a message that never ends
        for one in idle:
            one.close()
        later = fleet.stored(HUB) + 20
        fleet.wait(lambda: fleet.stored(HUB) >= later)
        now = resident(fleet.pid(HUB))
        assert before is not None
        assert now is not None
        assert now - before < ROOM, f"{before} MB became {now} MB"
        fleet.end_and_check()
        assert fleet.restarts == 0
        lines = [line for line in fleet.log(HUB).splitlines() if line.startswith(f"{CLIENT}: its connection is cut")]
        assert 1 <= len(lines) <= 4, lines  # the first, and one per tenfold
        assert "10 times so far" in lines[1]
