"""Who a party is: its certificate. Name and pin of a certificate decide its role, not what it says of itself.

Every party makes its own key and certificate, signed by itself, and others are told the pin: the digest of the
certificate. A channel trusts its peer's certificate and nothing else; a server those of its peers. No authority can
make another certificate for a name.
"""

from __future__ import annotations

import os
import ssl
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from crosshatch.errors import RunError
from crosshatch.runtime.store import write_whole

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

_KEY, _CERTIFICATE = "key.pem", "certificate.pem"


@dataclass(frozen=True)
class Identity:
    """A party's private key and certificate, both as PEM."""

    name: str
    certificate: bytes
    key: bytes = field(repr=False)

    @classmethod
    def make(cls, name: str, *, days: int = 365, now: datetime | None = None) -> Identity:
        """A new key, and a certificate for it signed by itself.

        >>> one = Identity.make("hub-0-0")
        >>> one.name, len(pin_of(one.certificate))
        ('hub-0-0', 64)
        """
        from crosshatch.runtime.new_certificate import new_certificate

        return cls(name, *new_certificate(name, days=days, now=now))

    def write(self, folder: Path) -> None:
        """Into a folder of its name, that its owner alone can read."""
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_whole(folder / _KEY, self.key)
        write_whole(folder / _CERTIFICATE, self.certificate)

    @classmethod
    def read(cls, folder: Path) -> Identity:
        """From its folder, which has its name; a key that others can read is refused."""
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
        return cls(folder.name, certificate, key)


def pin_of(certificate: bytes) -> str:
    """The SHA-256 digest of a certificate (PEM; of a chain, the first), by which others know it."""
    first, footer, _ = certificate.decode(errors="replace").partition(ssl.PEM_FOOTER)
    try:
        return sha256(ssl.PEM_cert_to_DER_cert(first + footer)).hexdigest()
    except ValueError as error:
        raise RunError(f"a certificate does not read ({error!s:.60}): is it a PEM file?") from None


@dataclass
class Peers:
    """Those a party talks to, by name, with their certificates; a revoked one is a stranger from then on."""

    certificates: Mapping[str, bytes]  # PEM
    _by_pin: dict[str, str] = field(init=False)

    def __post_init__(self) -> None:
        self._by_pin = {pin_of(one): name for name, one in self.certificates.items()}

    def who(self, certificate: bytes, made_out_to: str) -> str | None:
        """The peer whose certificate (PEM) this is, if it is made out to its name; None: a stranger."""
        peer = self._by_pin.get(pin_of(certificate))
        return peer if peer == made_out_to else None

    def revoke(self, name: str) -> None:
        """Whoever has this certificate is a stranger now."""
        self._by_pin = {pin: other for pin, other in self._by_pin.items() if other != name}
