"""Who a party is: its certificate. Name and pin of a certificate decide its role, not what it says of itself.

Every party makes its own key and certificate, signed by itself, and others are told the pin: the digest of the
certificate. A channel trusts its peer's certificate and nothing else; a server those of its peers. No authority can
make another certificate for a name.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from crosshatch.errors import RunError
from crosshatch.runtime.store import write_whole

if TYPE_CHECKING:
    from collections.abc import Mapping

_KEY, _CERTIFICATE = "key.pem", "certificate.pem"
_USAGE = x509.KeyUsage(
    digital_signature=True, key_cert_sign=False, content_commitment=False, key_encipherment=False,
    data_encipherment=False, key_agreement=False, crl_sign=False, encipher_only=False, decipher_only=False,
)  # fmt: skip
_SLACK = timedelta(days=1)  # clocks of machines differ, and are set


@dataclass(frozen=True)
class Identity:
    """A party's private key and certificate, both as PEM."""

    name: str
    certificate: bytes
    key: bytes = field(repr=False)

    @classmethod
    def make(cls, name: str, *, days: int = 365, now: datetime | None = None) -> Identity:
        """A new P-256 key, and a certificate for it signed by itself. (Ed25519 handshakes fail in grpcio.)

        >>> one = Identity.make("hub-0-0")
        >>> name_in(one.certificate), len(pin_of(one.certificate))
        ('hub-0-0', 64)
        """
        now = now or datetime.now(UTC)
        key, subject = (
            ec.generate_private_key(ec.SECP256R1()),
            x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]),
        )
        usages = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
        certificate = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(subject)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - _SLACK)
            .not_valid_after(now + timedelta(days=days))
            .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_USAGE, critical=True)
            .add_extension(x509.ExtendedKeyUsage(usages), critical=False)
            .sign(key, hashes.SHA256())
        )
        private = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        return cls(name, certificate.public_bytes(serialization.Encoding.PEM), private)

    def write(self, folder: Path) -> None:
        """Into a folder that its owner alone can read."""
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_whole(folder / _KEY, self.key)
        write_whole(folder / _CERTIFICATE, self.certificate)

    @classmethod
    def read(cls, folder: Path) -> Identity:
        """From its folder; a key that others can read is refused."""
        try:
            key, certificate = (folder / _KEY).read_bytes(), (folder / _CERTIFICATE).read_bytes()
            mode = os.stat(folder / _KEY).st_mode
        except OSError as error:
            raise RunError(
                f"{folder} has no identity of a party ({error.strerror}): it needs {_KEY}, {_CERTIFICATE}"
            ) from None
        if mode & 0o077:
            raise RunError(
                f"{folder / _KEY} can be read by others (mode {mode & 0o777:o}): chmod 600 it, or make a new one"
            )
        return cls(name_in(certificate), certificate, key)


def pin_of(certificate: bytes) -> str:
    """The SHA-256 digest of a certificate (PEM), by which others know it."""
    return sha256(_load(certificate).public_bytes(serialization.Encoding.DER)).hexdigest()


def name_in(certificate: bytes) -> str:
    """The name that a certificate (PEM) is for."""
    names = _load(certificate).subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    if len(names) != 1:
        raise RunError("a certificate names no party, or several: make a new one")
    return str(names[0].value)


def _load(certificate: bytes) -> x509.Certificate:
    try:
        return x509.load_pem_x509_certificate(certificate)
    except ValueError as error:
        raise RunError(f"a certificate does not read ({error!s:.60}): is it a PEM file?") from None


@dataclass
class Peers:
    """Those a party talks to, by name, with their certificates; a revoked one is a stranger from then on."""

    certificates: Mapping[str, bytes]  # PEM
    _by_pin: dict[str, str] = field(init=False)

    def __post_init__(self) -> None:
        self._by_pin = {pin_of(one): name for name, one in self.certificates.items()}
        for name, one in self.certificates.items():
            if name_in(one) != name:
                raise RunError(f"the certificate for {name} is made out to {name_in(one)}: give every party its own")

    def who(self, certificate: bytes) -> str | None:
        """The peer whose certificate (PEM) this is; None: a stranger."""
        return self._by_pin.get(pin_of(certificate))

    def revoke(self, name: str) -> None:
        """Whoever has this certificate is a stranger now."""
        self._by_pin = {pin: other for pin, other in self._by_pin.items() if other != name}
