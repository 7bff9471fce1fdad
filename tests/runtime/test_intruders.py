"""Whoever has no business here does not get in, and a run goes on undisturbed meanwhile."""

from __future__ import annotations

import os
import socket
import ssl
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

import msgspec
import pytest

from crosshatch.errors import CrosshatchError, MessageError
from crosshatch.parties.line import Line
from crosshatch.parties.recovery.mail import Frame, FrameKind
from crosshatch.runtime.envelope import FRAME, PIECE, Opener, pack
from crosshatch.runtime.identity import Identity
from crosshatch.runtime.secure import grpc
from tests.runtime.grpc_lines import GrpcLines
from tests.support.intruders import METHOD, minted, other

ROUNDS = 20


def run_with(attack: Callable[[GrpcLines], object], lines: GrpcLines | None = None) -> tuple[GrpcLines, object]:
    """A hub and a client that talk for some rounds; in the middle somebody attacks the hub."""
    lines, found = lines or GrpcLines(), list[object]()

    def client(line: Line) -> list[bytes]:
        answers = []
        for r in range(ROUNDS):
            if r == ROUNDS // 2:
                found.append(attack(lines))
            line.send("a-hub", (r, "share", 0), b"up")
            answers.append(line.recv("a-hub", (r, "share", 0)))
            lines.store("client", r + 1)
        return answers

    def hub(line: Line) -> None:
        for r in range(ROUNDS):
            line.send("client", (r, "share", 0), line.recv("client", (r, "share", 0)) + b" down")
            lines.store("a-hub", r + 1)

    assert lines.run({"a-hub": hub, "client": client})["client"] == [b"up down"] * ROUNDS
    return lines, found[0]


def stream(lines: GrpcLines, me: Identity | None, sends: list[bytes]) -> grpc.StatusCode:
    """How a stream to the hub ends, for somebody with this identity."""
    root = lines.identities["a-hub"].certificate
    pair = (None, None) if me is None else (me.key, me.certificate)
    options = [("grpc.ssl_target_name_override", "a-hub"), ("grpc.enable_retries", 0)]
    credentials = grpc.ssl_channel_credentials(root, *pair)
    with grpc.secure_channel(f"127.0.0.1:{lines.ports['a-hub']}", credentials, options) as channel:
        call = channel.stream_stream(METHOD)(iter(sends), timeout=10)
        try:
            list(call)
        except grpc.RpcError as error:
            code: grpc.StatusCode = error.code()
            return code
    return grpc.StatusCode.OK


STRANGERS: dict[str, Callable[[GrpcLines], Identity | None]] = {
    "no certificate": lambda _: None,
    "a certificate that nobody knows": lambda _: Identity.make("client"),
    "one for another name from a partner's key": lambda lines: minted(lines.identities["client"], "server-0-0"),
    "one for a known name from the hub's key": lambda lines: minted(lines.identities["a-hub"], "client"),
}


@pytest.mark.parametrize("who", STRANGERS)
def test_strangers_do_not_get_in(who: str) -> None:
    _, code = run_with(lambda lines: stream(lines, STRANGERS[who](lines), list(pack([Frame(FrameKind.GREETING, 0)]))))
    assert code == grpc.StatusCode.UNAVAILABLE  # the handshake failed


def test_an_expired_certificate_is_refused_though_it_is_known() -> None:
    lines = GrpcLines()
    lines.identities["old"] = Identity.make("old", days=1, now=datetime.now(UTC) - timedelta(days=2))

    def hub(line: Line) -> None:
        line.recv("client", (0, "share", 0))

    def client(line: Line) -> None:
        assert stream(lines, lines.identities["old"], []) == grpc.StatusCode.UNAVAILABLE
        line.send("a-hub", (0, "share", 0), b"")

    lines.run({"a-hub": hub, "client": client, "old": lambda _: None})


def dial(lines: GrpcLines, version: ssl.TLSVersion, folder: Path) -> str | None:
    """A handshake with the hub, as a client that it knows; the version that was agreed on."""
    me, pair = lines.identities["client"], folder / "pair.pem"
    pair.write_bytes(me.key + me.certificate)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(cadata=lines.identities["a-hub"].certificate.decode())
    context.load_cert_chain(pair)
    context.minimum_version = context.maximum_version = version
    context.set_alpn_protocols(["h2"])
    with (
        socket.create_connection(("127.0.0.1", lines.ports["a-hub"]), 10) as plain,
        context.wrap_socket(plain, server_hostname="a-hub") as safe,
    ):
        return safe.version()


def test_old_tls_is_refused_with_a_good_certificate_too(tmp_path: Path) -> None:
    _, found = run_with(lambda lines: dial(lines, ssl.TLSVersion.TLSv1_3, tmp_path))
    assert found == "TLSv1.3"

    def refused(lines: GrpcLines) -> None:
        with pytest.raises((ssl.SSLError, ConnectionError)):
            dial(lines, ssl.TLSVersion.TLSv1_2, tmp_path)

    run_with(refused)


TOO_LATE = """
import grpc, asyncio
from crosshatch.runtime.identity import Identity, Peers
from crosshatch.runtime.streams import Streams
from crosshatch.runtime.complaints import Complaints
async def serve():
    hub, client = Identity.make("hub"), Identity.make("client")
    peers, nothing = Peers({"client": client.certificate}), lambda *_: None
    streams = Streams(hub, peers, nothing, nothing, nothing, nothing, Complaints(print))
    await streams.serve("127.0.0.1", 0)
try:
    asyncio.run(serve())
except Exception as error:
    print(error)
"""


def test_where_grpc_was_imported_before_a_server_notices_that_old_tls_gets_in() -> None:
    env = {name: value for name, value in os.environ.items() if name != "GRPC_SSL_CIPHER_SUITES"}
    ended = subprocess.run([sys.executable, "-c", TOO_LATE], env=env, capture_output=True, text=True, check=False)
    assert "hub: its server lets TLS 1.2 in: start it in a process that has not used grpc before" in ended.stdout


def test_plain_http_and_idle_connections() -> None:
    def attack(lines: GrpcLines) -> list[socket.socket]:
        at = ("127.0.0.1", lines.ports["a-hub"])
        idle = [socket.create_connection(at, 10) for _ in range(200)]
        idle[0].sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        return idle

    _, idle = run_with(attack)
    assert isinstance(idle, list)
    for one in idle:
        one.close()


def test_a_revoked_party_is_cut_at_once_and_stays_out() -> None:
    lines = GrpcLines()

    def hub(line: Line) -> None:
        line.recv("client", (0, "share", 0))
        lines.parties["a-hub"].streams.revoke("client")

    def client(line: Line) -> None:
        line.send("a-hub", (0, "share", 0), b"")
        line.recv("a-hub", (1, "share", 0))

    with pytest.raises(CrosshatchError, match="a-hub does not let client in"):
        lines.run({"a-hub": hub, "client": client})
    assert any("a stranger's certificate" in line for line in lines.said)


WRONG = {
    "a length of 10 GB": other(length=10_000_000_000),
    "more than was announced": other(b"123", length=2),
    "a middle without a beginning": other(b"1", length=10, before=9),
    "nothing of something": other(length=10),
    "a piece that is not full, and not the last": other(b"12", length=10),
    "a negative length": other(length=-1),
    "another kind": other(kind=9),
    "a number for a name": other(key=(0, 7, 0)),
    "a name without end": other(key=(0, "x" * 61, 0)),
    "a number that is text": other(stored="0"),
    "one field more": msgspec.msgpack.encode([[1, 0, [0, "", 0], 0, 0, b"", 1]]),
    "a long greeting": other(bytes(5000), kind=0),
    "no list": msgspec.msgpack.encode({"kind": 1}),
    "nothing": b"",
    "nested without end": b"\x91" * 100_000,
}


@pytest.mark.parametrize("what", WRONG)
def test_what_is_no_envelope_is_refused_by_one_line(what: str) -> None:
    with pytest.raises(MessageError) as raised:
        Opener(lambda _: 1000).open(WRONG[what])
    assert "\n" not in str(raised.value)
    assert len(str(raised.value)) < 200


def test_a_frame_is_bounded_by_the_transport_too() -> None:
    with pytest.raises(MessageError, match="are the most"):
        Opener(lambda _: 10 * FRAME).open(bytes(FRAME + 1))


def test_pieces_of_two_messages_do_not_mix() -> None:
    opener = Opener(lambda _: 2 * PIECE)
    assert opener.open(other(bytes(PIECE), length=PIECE + 2)) == []
    with pytest.raises(MessageError, match="amid 'share' of round 0"):
        opener.open(other(b"34", length=PIECE + 2, before=PIECE, key=(1, "share", 0)))


def fuzz(count: int) -> None:
    """Envelopes with random changes: refused, or frames within the limits."""
    random = Random(1)
    (good,) = pack([Frame(FrameKind.MESSAGE, 3, (4, "share", 0), random.randbytes(300)), Frame(FrameKind.STORED, 4)])
    for _ in range(count):
        data = bytearray(good)
        for _ in range(random.choice((1, 1, 2, 5, 50))):
            place, how = random.randrange(len(data)), random.random()
            if how < 0.7:
                data[place] = random.randrange(256)
            elif how < 0.85:
                del data[place : place + random.randrange(1, 20)]
            else:
                data[place:place] = random.randbytes(random.randrange(1, 20))
            if not data:
                break
        opener = Opener(lambda _: 1000)
        try:
            frames = opener.open(bytes(data))
        except MessageError:
            continue
        assert all(len(one.message) <= 4096 and isinstance(one, Frame) for one in frames)


def test_fuzzed_envelopes() -> None:
    fuzz(5_000)


@pytest.mark.slow
def test_many_fuzzed_envelopes() -> None:
    fuzz(100_000)


def test_a_known_party_that_sends_rubbish_is_cut_and_named() -> None:
    rubbish = [os.urandom(50), other(length=10_000_000_000)]

    def attack(lines: GrpcLines) -> list[grpc.StatusCode]:
        return [stream(lines, lines.identities["client"], [one]) for one in rubbish]

    lines, _ = run_with(attack)
    assert any(line.startswith("client: its connection is cut") for line in lines.said)


def test_envelopes_go_through_as_they_were() -> None:
    random = Random(2)
    frames = [
        Frame(FrameKind.MESSAGE, i, (i, "x" * 60, i), random.randbytes(size))
        for i, size in enumerate((0, 5, 3_000_000, 1))
    ]
    opener = Opener(lambda _: 3_000_000)
    sent = list(pack(frames))
    assert max(map(len, sent)) <= FRAME
    assert [frame for data in sent for frame in opener.open(data)] == frames
