"""Real processes that train while others try to get in: undisturbed, with bounded memory, and with a line each."""

from __future__ import annotations

import os
import signal
import socket
import ssl
from pathlib import Path
from resource import RLIMIT_NOFILE, getrlimit
from threading import Event

import msgspec
import pytest
import torch

from crosshatch import wire
from crosshatch.parties.line import Key, Name
from crosshatch.parties.recovery.greeting import Greeting
from crosshatch.parties.recovery.mail import Frame, FrameKind
from crosshatch.runtime.envelope import pack
from crosshatch.runtime.identity import Identity
from crosshatch.runtime.secure import grpc
from crosshatch.runtime.store import Pace
from tests.runtime.fleet import Fleet
from tests.runtime.fleet_process import RUN
from tests.runtime.soak import resident
from tests.support.intruders import METHOD, minted, other

HUB, CLIENT = "hub-0-1", "client-0-1-0"
IDLE = min(1000, getrlimit(RLIMIT_NOFILE)[0] // 2)  # connections
ROOM = 100  # MB
SPEAKS = {"an old TLS": "speaks", "plain HTTP": "speaks"}


def knock(folder: Path, port: int, me: Identity | None, sends: list[bytes], at: Name = HUB) -> grpc.StatusCode:
    """How a stream to the hub ends, for somebody with this identity."""
    pair = (None, None) if me is None else (me.key, me.certificate)
    options = [("grpc.ssl_target_name_override", at), ("grpc.enable_retries", 0)]
    credentials = grpc.ssl_channel_credentials((folder / f"{at}.pem").read_bytes(), *pair)
    with grpc.secure_channel(f"127.0.0.1:{port}", credentials, options) as channel:
        call = channel.stream_stream(METHOD)(iter(sends), timeout=10)
        try:
            list(call)
        except grpc.RpcError as error:
            code: grpc.StatusCode = error.code()
            return code
    return grpc.StatusCode.OK


def old_tls(port: int, me: Identity, folder: Path) -> None:
    """A handshake that a good certificate does not save."""
    pair = folder / "pair.pem"
    pair.write_bytes(me.key + me.certificate)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.load_cert_chain(pair)
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    with socket.create_connection(("127.0.0.1", port), 10) as plain, pytest.raises((ssl.SSLError, ConnectionError)):
        context.wrap_socket(plain)


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
            minted(client, HUB),  # it poses as a hub
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
        old_tls(port, client, tmp_path)
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
        for why in ("no certificate", "a certificate that nobody here trusts", "an old TLS", "plain HTTP"):
            assert f"127.0.0.1: a handshake failed: it {SPEAKS.get(why, 'has')} {why}" in fleet.log(HUB)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("case", "who", "at", "exchange"),
    [("TDCD", CLIENT, HUB, "decide"), ("HSGD, coded", "hub-0-1", "hub-0-0", "average_groups")],
    ids=["a client as a hub", "a hub as the server"],
)
def test_what_only_others_may_send_is_not_taken(case: str, who: Name, at: Name, exchange: str, tmp_path: Path) -> None:
    with Fleet(case, tmp_path, rounds=10_000_000) as fleet:
        fleet.start()
        fleet.wait(lambda: fleet.stored(at) >= 5)
        for n in range(12):
            sends = list(pack([Frame(FrameKind.MESSAGE, 0, (n * 1000, exchange, 0), bytes(8))]))
            knock(tmp_path, fleet.setup.ports[at], Identity.read(tmp_path / who), sends, at)
        later = fleet.stored(at) + 5
        fleet.wait(lambda: fleet.stored(at) >= later)
        fleet.end_and_check()
        assert fleet.restarts == 0
        lines = [line for line in fleet.log(at).splitlines() if line.startswith(f"{who}: its connection is cut")]
        assert f"(8 bytes announced for '{exchange}' of round 0, use 0, 0 are the most)" in lines[0]
        assert "10 times so far" in lines[1]
        assert len(lines) == 2


def in_its_name(fleet: Fleet, *messages: tuple[Key, bytes]) -> None:
    """Somebody who has the client's key sends these while the client itself is frozen."""
    fleet.kill(CLIENT, how=signal.SIGSTOP)
    Event().wait(1)  # until the hub has stored all that it can
    greeting = Greeting({"run": RUN, "begun again": "[]", "text": fleet.setup.text}, {}).encode()
    stored, folder = fleet.stored(CLIENT), fleet.setup.folder
    frames = [Frame(FrameKind.GREETING, stored, message=greeting)]
    frames += [Frame(FrameKind.MESSAGE, stored, key, message) for key, message in messages]
    knock(folder, fleet.setup.ports[HUB], Identity.read(folder / CLIENT), list(pack(frames)))
    fleet.kill(CLIENT, how=signal.SIGCONT)


@pytest.mark.slow
def test_old_rounds_and_some_of_the_future_disturb_nobody(tmp_path: Path) -> None:
    with Fleet("TDCD", tmp_path, rounds=10_000_000) as fleet:
        fleet.start()
        fleet.wait(lambda: fleet.stored(HUB) >= 20)
        in_its_name(fleet, *(((round, "share", 0), b"another") for round in (*range(15), *range(10**6, 10**6 + 50))))
        later = fleet.stored(HUB) + 20
        fleet.wait(lambda: fleet.stored(HUB) >= later)
        fleet.end_and_check()
        assert fleet.restarts == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("messages", "told"),
    [
        ([((10**6, "share", 0), text) for text in (b"one", b"two")],
         "sent other bytes for 'share' of round 1000000, use 0, than before: no replay of the same run"),
        ([((round, "share", 0), b"") for round in range(10**6, 10**6 + 300)],
         f"is more than 201 rounds ahead of what {HUB} has stored"),
        ([((-1, "average", 0), b"")], "sent 2 x 3 float64 as 'average' of round"),
    ],
    ids=["a repeat with other bytes", "a future without end", "another shape"],
)  # fmt: skip
def test_a_party_that_cannot_be_right_ends_the_run_and_is_named(
    messages: list[tuple[Key, bytes]], told: str, tmp_path: Path
) -> None:
    pace = Pace(rounds=1) if messages[0][0][0] < 0 else Pace()
    with Fleet("TDCD", tmp_path, rounds=10_000_000, pace=pace, wait=10.0) as fleet:
        fleet.start()
        fleet.wait(lambda: fleet.stored(HUB) >= 20)
        if messages[0][0][0] < 0:  # in the round that the hub is in
            fleet.kill(CLIENT, how=signal.SIGSTOP)
            Event().wait(1)
            key = (fleet.stored(HUB), "average", 0)
            messages = [(key, wire.encode("0badcafe", key[0], key[1], (torch.zeros(2, 3, dtype=torch.float64),)))]
        in_its_name(fleet, *messages)
        lines = fleet.wait_refused()
    del lines[CLIENT]  # whose own connection was taken: it may have waited for somebody who is gone
    assert all(f"{CLIENT} {told}" in line for line in lines.values()), lines
