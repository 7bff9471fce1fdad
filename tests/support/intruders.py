"""Certificates that nobody should accept."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.x509.oid import NameOID

from crosshatch.runtime.identity import Identity

METHOD = "/crosshatch.Party/Stream"


def minted(by: Identity, name: str) -> Identity:
    """A certificate for another name, signed with a partner's key."""
    issuer = x509.load_pem_x509_certificate(by.certificate)
    signer, mine = serialization.load_pem_private_key(by.key, None), Identity.make(name)
    own = x509.load_pem_x509_certificate(mine.certificate)
    made = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
        .issuer_name(issuer.subject)
        .public_key(own.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(datetime.now(UTC) - timedelta(hours=1))
        .not_valid_after(datetime.now(UTC) + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .sign(signer, hashes.SHA256())  # type: ignore[arg-type]
    )
    return Identity(name, made.public_bytes(serialization.Encoding.PEM) + by.certificate, mine.key)


def other(piece: bytes = b"", **changed: object) -> bytes:
    """An envelope that is right but for what is changed, in a message of a party that is known."""
    right: dict[str, object] = {
        "kind": 1, "stored": 0, "key": (0, "share", 0), "length": len(piece), "before": 0, "piece": piece
    }  # fmt: skip
    return msgspec.msgpack.encode([list((right | changed).values())])
