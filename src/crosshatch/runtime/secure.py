"""gRPC over mutual TLS 1.3, and nothing older.

grpcio 1.85 has no switch for the oldest version of TLS. Its list of cipher suites is about versions up to 1.2 only:
with suites that need a pre-shared key, which nobody has, no such handshake can end well, and 1.3 goes on as before.
(Suites of 1.3 in that list would make every handshake fail.) The list is read when grpc is imported, so this module
sets it before it does; where somebody else has imported grpc before, the list is ignored without a word, and a server,
which tries a 1.2 handshake with itself at its start, refuses to serve.
"""

import os
import socket
import ssl
from tempfile import NamedTemporaryFile

from crosshatch.runtime.needed import NEW_TLS_ONLY

os.environ.update(NEW_TLS_ONLY)
os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # what is wrong with a peer is said in our own log

import grpc
import grpc.aio

from crosshatch.errors import RunError
from crosshatch.runtime.handshakes import OWN
from crosshatch.runtime.identity import Identity, Peers

__all__ = ["grpc", "require_new_tls_only", "server_credentials"]
_WAIT = 30.0  # seconds, for a handshake with oneself, on a machine that has other work to do


def server_credentials(me: Identity, peers: Peers) -> grpc.ServerCredentials:
    """For a server that lets its peers in; a stranger's handshake fails.

    Its own certificate is trusted besides, so that it can try handshakes with itself; no stream is opened to it.
    """
    trusted = b"".join([*peers.certificates.values(), me.certificate])
    return grpc.ssl_server_credentials([(me.key, me.certificate)], trusted, require_client_auth=True)


def require_new_tls_only(port: int, me: Identity) -> None:
    """Refuse to serve where a TLS 1.2 handshake with oneself comes to its end, or a TLS 1.3 one does not."""
    if not _shakes_hands(port, me, ssl.TLSVersion.TLSv1_3):
        raise RunError(
            f"{me.name}: no TLS 1.3 handshake with itself at port {port}: does this grpcio fit this machine?"
        )
    if _shakes_hands(port, me, ssl.TLSVersion.TLSv1_2):
        raise RunError(
            f"{me.name}: its server lets TLS 1.2 in: start it in a process that has not used grpc before, and leave "
            "GRPC_SSL_CIPHER_SUITES to it"
        )


def _shakes_hands(port: int, me: Identity, version: ssl.TLSVersion) -> bool:
    """Whether a handshake of this version ends well, as far as the side that dials can tell.

    With a certificate that is let in: without one, any handshake of 1.2 would fail, whatever the version.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.minimum_version = context.maximum_version = version
    context.set_alpn_protocols(["h2"])
    with NamedTemporaryFile() as pair:  # there is no other way to tell it, and nobody else may read such a file
        pair.write(me.key + me.certificate)
        pair.flush()
        context.load_cert_chain(pair.name)
    try:
        with socket.create_connection(("127.0.0.1", port), _WAIT) as plain:
            OWN.add(str(plain.getsockname()[1]))
            with context.wrap_socket(plain):
                return True
    except (ssl.SSLError, ConnectionError):
        return False
    except OSError as error:
        raise RunError(f"{me.name}: nobody answers at its own port {port} ({error})") from None
