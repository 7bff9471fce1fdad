"""What gRPC's log says of handshakes that failed; its form is that of grpcio 1.85, in whose processes it is read."""

from __future__ import annotations

import subprocess
import sys

from crosshatch.runtime.handshakes import HandshakeReader

HEAD = b"I1118 09:39:13.401808   31723 handshaker.cc:155] "
ENDED = (
    b" shutdown=false index=2, args={endpoint=0x7f, args={grpc.internal.endpoint_peer_address=ipv4:10.0.0.7:34970, x=0}"
)
LOG = [
    b"W1118 09:39:13.352529   31687 log.cc:102] Log level INFO is not suitable for production.\n",
    HEAD + b"CallNextHandshakerLocked: error=OK" + ENDED + b"\n",
    b"a library says something\n",
    HEAD + b"CallNextHandshakerLocked: error=UNKNOWN: Ssl handshake failed (TSI_PROTOCOL_FAILURE): SSL_ERROR_SSL: "
    b"error:1000007d:SSL routines:OPENSSL_internal:CERTIFICATE_VERIFY_FAILED: certificate has expired: OK\n",
    b"=== Source Location Trace: === \n",
    b"src/core/util/status_helper.cc:68\n",
    ENDED + b"\n",
    HEAD + b"CallNextHandshakerLocked: error=UNAVAILABLE: Handshake read failed (Endpoint closing)" + ENDED + b"\n",
    b"\n",
    HEAD
    + b"CallNextHandshakerLocked: error=UNAVAILABLE: Handshake read failed (Shutting down endpoint)"
    + ENDED
    + b"\n",
    b"and something else\n",
]
SERVE = """
import sys
from crosshatch.runtime.handshakes import GrpcLog
log = GrpcLog()
import asyncio, os, socket, threading
from crosshatch.runtime.complaints import Complaints
from crosshatch.runtime.identity import Identity, Peers
from crosshatch.runtime.streams import Streams
said, news = [], threading.Event()
def say(line):
    said.append(line)
    news.set()
async def serve():
    hub, nothing, complaints = Identity.make("hub"), lambda *_: None, Complaints(say)
    log.follow(complaints)
    streams = Streams(hub, Peers({}), nothing, nothing, nothing, nothing, complaints)
    port = await streams.serve("127.0.0.1", 0)
    with socket.create_connection(("127.0.0.1", port)) as one:
        one.sendall(b"GET / HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n")
        await asyncio.to_thread(news.wait, 20)
    await streams.close()
asyncio.run(serve())
print(said)
sys.stderr.write("by Python")
"""


def test_addresses_and_reasons_are_found_and_the_rest_is_passed_on() -> None:
    found, others = list[tuple[str, str, str]](), list[bytes]()
    reader = HandshakeReader(lambda *one: found.append(one), others.append)
    for line in LOG:
        reader.read(line)
    assert found == [
        ("10.0.0.7", "34970", "it has a certificate that nobody here trusts (certificate has expired)"),
        ("10.0.0.7", "34970", "it was silent for too long"),
        ("10.0.0.7", "34970", "it was silent for too long"),
    ]
    assert others == [LOG[2], LOG[-1]]


def test_this_grpc_tells_who_did_not_get_in() -> None:
    """Nothing of the handshakes that a server tries with itself, nothing on standard error but Python's own."""
    ended = subprocess.run([sys.executable, "-c", SERVE], capture_output=True, text=True, check=False, timeout=60)
    assert ended.stdout.strip() == "['127.0.0.1: a handshake failed: it speaks plain HTTP']", ended.stderr
    assert ended.stderr == "by Python"
