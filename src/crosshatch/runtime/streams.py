"""One bidirectional stream of raw bytes per pair of parties, over gRPC with mutual TLS.

Whoever dials holds the connection, and dials for as long as the run lasts. A stream belongs to the peer whose
certificate it came with, whatever is said on it; a stream that breaks may lose what is under way, which mail makes up
for. Everything here runs in one event loop, but for `transmit`, `cut` and `revoke`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field

from crosshatch.errors import CrosshatchError, MessageError
from crosshatch.parties.line import Key, Name
from crosshatch.parties.recovery.mail import Frame
from crosshatch.runtime.complaints import Complaints
from crosshatch.runtime.envelope import FRAME, Opener, pack
from crosshatch.runtime.identity import Identity, Peers
from crosshatch.runtime.secure import grpc, require_new_tls_only, server_credentials

_METHOD = "crosshatch.Party", "Stream"
_PINGS = 5_000  # milliseconds between pings on a stream where nothing happens
_OPTIONS = [
    ("grpc.max_receive_message_length", FRAME),
    ("grpc.max_send_message_length", FRAME),
    ("grpc.keepalive_time_ms", _PINGS),
    ("grpc.keepalive_timeout_ms", _PINGS),
    ("grpc.http2.ping_timeout_ms", _PINGS),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.max_pings_without_data", 0),
    ("grpc.min_reconnect_backoff_ms", _PINGS),  # a handshake that nobody answers is given up then, and not after 20 s
    ("grpc.http2.min_ping_interval_without_data_ms", _PINGS // 5),
    ("grpc.http2.min_recv_ping_interval_without_data_ms", _PINGS // 5),
]
_SERVING = [
    *_OPTIONS,
    ("grpc.so_reuseport", 0),
    ("grpc.max_concurrent_streams", 8),
    ("grpc.max_connection_idle_ms", 30_000),  # without a stream
    ("grpc.server_handshake_timeout_ms", 10_000),
]
_AGAIN = (0.05, 1.0)  # seconds between attempts to dial: at first, at most
_LINGER = 1.0  # seconds
_READ = 5.0  # seconds in which the other side may read the last words
_BROKEN = (grpc.RpcError, asyncio.InvalidStateError, grpc.aio.UsageError, grpc.aio.InternalError)


@dataclass
class Streams:
    """A party's ends. `connected` and `arrived` are told of new streams and of frames; an error of theirs ends the run.

    `failed` is told of it. `longest` is how many bytes a peer's message under a key may have.
    """

    me: Identity
    peers: Peers
    connected: Callable[[Name], None]
    arrived: Callable[[Name, Frame], None]
    failed: Callable[[CrosshatchError], None]
    longest: Callable[[Name, Key], int]
    complaints: Complaints
    _links: dict[Name, _Link] = field(default_factory=dict, init=False)
    _dialling: list[asyncio.Task[None]] = field(default_factory=list, init=False)
    _server: grpc.aio.Server | None = field(default=None, init=False)
    _loop: asyncio.AbstractEventLoop = field(init=False)
    _closing: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        self._loop = asyncio.get_running_loop()

    async def serve(self, host: str, port: int) -> int:
        """Let peers in at this port (0: any that is free); which one it is. An old TLS must not get in."""
        handler = grpc.stream_stream_rpc_method_handler(self._on_stream)
        self._server = server = grpc.aio.server(options=_SERVING)
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(_METHOD[0], {_METHOD[1]: handler}),))
        try:
            port = server.add_secure_port(f"{host}:{port}", server_credentials(self.me, self.peers))
        except RuntimeError:
            raise MessageError(f"{self.me.name} cannot listen at {host}:{port}: is the port taken?") from None
        await server.start()
        await asyncio.to_thread(require_new_tls_only, port, self.me)
        return port

    def dial(self, peer: Name, address: str) -> None:
        """Hold a stream to this peer, from now until the end."""
        self._dialling.append(asyncio.ensure_future(self._keep_dialling(peer, address)))

    def transmit(self, peer: Name, frame: Frame) -> None:
        """Hand a frame to the stream, if there is one; from any thread."""
        self._loop.call_soon_threadsafe(self._put, peer, frame)

    def cut(self, peer: Name) -> None:
        """Break the stream, with all that is under way; from any thread."""
        self._loop.call_soon_threadsafe(self._cut, peer)

    def revoke(self, peer: Name) -> None:
        """Whoever has this peer's certificate is a stranger, on the stream that is open too; from any thread."""
        self.peers.revoke(peer)
        self.cut(peer)

    async def close(self) -> None:
        """Send what waits, and end all streams: in order, for one that is cancelled loses what was not read yet."""
        self._closing = True
        await asyncio.gather(*(link.finish() for link in list(self._links.values())))
        for task in self._dialling:
            task.cancel()
        await asyncio.gather(*self._dialling, return_exceptions=True)
        if self._server is not None:
            await self._server.stop(_READ)

    def _put(self, peer: Name, frame: Frame) -> None:
        if peer in self._links:
            self._links[peer].put(frame)

    def _cut(self, peer: Name) -> None:
        link = self._links.get(peer)
        if link is not None:
            link.end()

    async def _on_stream(self, _: object, context: grpc.aio.ServicerContext) -> None:
        shown = context.auth_context()
        certificate, name = (shown.get(key, [b""])[0] for key in ("x509_pem_cert", "x509_common_name"))
        peer = self.peers.who(certificate, name.decode(errors="replace")) if certificate else None
        if peer is None:
            self.complaints.add(context.peer(), "a stranger's certificate")
            await context.abort(grpc.StatusCode.PERMISSION_DENIED, f"{self.me.name} does not know this certificate")
        assert peer is not None
        await self._talk(peer, context.read, context.write)

    async def _keep_dialling(self, peer: Name, address: str) -> None:
        pause, options = _AGAIN[0], [*_OPTIONS, ("grpc.ssl_target_name_override", peer)]
        # it trusts this certificate alone
        credentials = grpc.ssl_channel_credentials(self.peers.certificates[peer], self.me.key, self.me.certificate)
        while True:
            async with grpc.aio.secure_channel(address, credentials, options=options) as channel:
                call = channel.stream_stream(f"/{_METHOD[0]}/{_METHOD[1]}")()
                try:
                    await call.wait_for_connection()
                    pause = _AGAIN[0]
                    await self._talk(peer, call.read, call.write, call.done_writing)
                except _BROKEN:
                    pass  # nobody is there, or it does not let us in
                if call.done() and await call.code() == grpc.StatusCode.PERMISSION_DENIED:
                    self.failed(MessageError(f"{peer} does not let {self.me.name} in: {await call.details()}"))
                    return
                call.cancel()
            if self._closing:
                return
            await asyncio.sleep(pause)
            pause = min(2 * pause, _AGAIN[1])

    async def _talk(
        self, peer: Name, read: Callable[[], Awaitable[object]], write: Callable[[bytes], Awaitable[None]],
        done_writing: Callable[[], Awaitable[None]] | None = None,
    ) -> None:  # fmt: skip
        """Until the stream ends or is cut; a newer one of the same peer takes its place."""
        if peer in self._links:
            self._links[peer].end()
        reading = asyncio.ensure_future(self._read(peer, read))
        self._links[peer] = link = _Link(write, reading, done_writing)
        self.connected(peer)
        try:
            await asyncio.wait([reading])
        finally:
            reading.cancel()
            if self._links.get(peer) is link:
                del self._links[peer]
            await link.stop()

    async def _read(self, peer: Name, read: Callable[[], Awaitable[object]]) -> None:
        opener = Opener(lambda key: self.longest(peer, key))
        try:
            while (data := await read()) is not grpc.aio.EOF:
                assert isinstance(data, bytes)
                for frame in opener.open(data):
                    self._take(peer, frame)
        except MessageError as error:
            self.complaints.add(peer, "its connection is cut", str(error))
        except _BROKEN:
            pass  # whoever dials dials again

    def _take(self, peer: Name, frame: Frame) -> None:
        try:
            self.arrived(peer, frame)
        except CrosshatchError as error:
            self.failed(error)


class _Link:
    """One stream: frames in order, what waits together goes together, no faster than the peer takes it."""

    def __init__(
        self, write: Callable[[bytes], Awaitable[None]], reading: asyncio.Task[None],
        done_writing: Callable[[], Awaitable[None]] | None,
    ) -> None:  # fmt: skip
        self._write, self._reading, self._done_writing = write, reading, done_writing
        self._waiting: list[Frame] = []
        self._writing: asyncio.Task[None] | None = None
        self._over = False

    def end(self) -> None:
        self._reading.cancel()

    def put(self, frame: Frame) -> None:
        self._waiting.append(frame)
        if not self._over and (self._writing is None or self._writing.done()):
            self._writing = asyncio.ensure_future(self._drain())

    async def stop(self) -> None:
        """Write no more. A stream that ends amid a write would stay open on the other side: wait for it a little."""
        self._over = True
        if self._writing is not None:
            await asyncio.wait([self._writing], timeout=_LINGER)
            self._writing.cancel()

    async def finish(self) -> None:
        """Write what waits, and end the stream when the other side has read it, or does not for a while.

        Who dialled says that no more follows, and is answered when that was read; a server's status follows what it
        wrote.
        """
        if self._writing is not None:
            await asyncio.gather(self._writing, return_exceptions=True)
        if self._done_writing is None:
            self.end()
            return
        with suppress(*_BROKEN):
            await self._done_writing()
            await asyncio.wait([self._reading], timeout=_READ)

    async def _drain(self) -> None:
        try:
            while self._waiting and not self._over:
                frames, self._waiting = self._waiting, []
                for data in pack(frames):
                    if not self._over:
                        await self._write(data)
        except _BROKEN:
            self._over = True
            self.end()
