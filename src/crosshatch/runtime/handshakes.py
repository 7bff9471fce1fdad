"""Handshakes that failed, and where they came from: gRPC tells that nobody but its own log, on standard error.

The log is asked for handshakes alone and is read here, so that of each kind and address there is one line with a count.
What else is written to standard error, by libraries below Python, is passed on.
"""

import fcntl
import os
import re
import sys
import threading
from collections.abc import Callable
from typing import IO

from crosshatch.runtime.complaints import Complaints

HANDSHAKES_ONLY = {"GRPC_VERBOSITY": "INFO", "GRPC_TRACE": "handshaker"}
"""What has to be in the environment before anybody imports grpc, so that its log tells of handshakes."""
_ROOM = 1 << 20  # bytes of the log that wait to be read
_HEAD = re.compile(rb"[IWEF]\d{4} \d\d:\d\d:\d\d\.\d+ +\d+ \S+\.(?:cc|h):\d+\] ")
_FAILED = re.compile(rb"CallNextHandshakerLocked: error=(?!OK)(.*)")
_PEER = re.compile(rb"endpoint_peer_address=ipv[46](?::|%3A)(.+?)(?::|%3A)(\d+)[,}]")
_REASON = re.compile(r"OPENSSL_internal:(\w+)(?:: ([^:]+))?")
_WORDS = {
    "CERTIFICATE_VERIFY_FAILED": "it has a certificate that nobody here trusts",
    "PEER_DID_NOT_RETURN_A_CERTIFICATE": "it has no certificate",
    "NO_SHARED_CIPHER": "it speaks an old TLS",
    "UNSUPPORTED_PROTOCOL": "it speaks an old TLS",
    "HTTP_REQUEST": "it speaks plain HTTP",
    "WRONG_VERSION_NUMBER": "it does not speak TLS",
}
_ENDED = {
    "Endpoint closing": "it was silent for too long",
    "Shutting down endpoint": "it was silent for too long",
    "Socket closed": "it ended amid it",
    "Connection reset": "it ended amid it",
}
OWN: set[str] = set()
"""Ports from which this process tries handshakes with itself."""


class GrpcLog:
    """Takes standard error over, for as long as the process lives; Python's own goes where it went before.

    To be made before grpc is imported. `follow` says whose complaints they are.
    """

    def __init__(self) -> None:
        os.environ.update(HANDSHAKES_ONLY)
        self._elsewhere = os.dup(2)
        sys.stderr = os.fdopen(self._elsewhere, "w", buffering=1, closefd=False)
        reading, writing = os.pipe()
        if sys.platform == "linux":
            fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, _ROOM)
        os.set_blocking(writing, False)  # in a flood lines are lost, and gRPC never waits for whoever reads them
        os.dup2(writing, 2)
        os.close(writing)
        self._complaints: Complaints | None = None
        threading.Thread(target=self._read, args=(os.fdopen(reading, "rb"),), daemon=True).start()

    def follow(self, complaints: Complaints) -> None:
        """Tell these complaints of every failure from now on."""
        self._complaints = complaints

    def _read(self, pipe: IO[bytes]) -> None:
        reader = HandshakeReader(self._failed, lambda line: os.write(self._elsewhere, line))
        for line in pipe:
            reader.read(line)

    def _failed(self, address: str, port: str, why: str) -> None:
        if self._complaints is not None and port not in OWN:
            self._complaints.add(address, f"a handshake failed: {why}")


class HandshakeReader:
    """Reads gRPC's log line by line: `failed(address, port, why)` and, of lines that are not gRPC's, `other(line)`."""

    def __init__(self, failed: Callable[[str, str, str], object], other: Callable[[bytes], object]) -> None:
        self._failed, self._other = failed, other
        self._why: str | None = None  # of a failure whose address follows
        self._inside = False  # an entry of several lines

    def read(self, line: bytes) -> None:
        """Take the next line of grpc's log."""
        if _HEAD.match(line):
            self._inside, found = True, _FAILED.search(line)
            self._why = None if found is None else _in_words(found[1].decode(errors="replace"))
        elif not self._inside or not (line.startswith((b"===", b"src/", b"\n")) or b"grpc." in line):
            self._inside = False
            self._other(line)
            return
        peer = _PEER.search(line)
        if self._why is not None and peer is not None:
            self._failed(peer[1].decode(), peer[2].decode(), self._why)
            self._why = None


def _in_words(error: str) -> str:
    """What the other side did, from what gRPC says of it."""
    found = _REASON.search(error)
    if found is None:
        return next((words for sign, words in _ENDED.items() if sign in error), error[:80])
    words = _WORDS.get(found[1], found[1])
    return f"{words} ({found[2]})" if found[1] == "CERTIFICATE_VERIFY_FAILED" and found[2] else words
