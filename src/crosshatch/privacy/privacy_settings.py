"""The config section [privacy] as a value."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import partial
from typing import TYPE_CHECKING, Literal

from crosshatch.errors import ConfigError
from crosshatch.privacy.fixed_point import FixedPoint
from crosshatch.privacy.key_bits import KEY_BITS, check_key_bits
from crosshatch.privacy.operations import OperationSeconds

if TYPE_CHECKING:  # torch takes seconds
    from crosshatch.privacy.exchanges.cipher import Cipher
    from crosshatch.simulator.vertical.encryption_hook import MakeEncryption


@dataclass(frozen=True)
class PrivacySettings:
    """Section [privacy]: whether derivatives travel encrypted, and how.

    `ciphertexts`: "real" ones, or their "costs" alone: the same numbers through the same fixed point, with the bytes of
    ciphertexts and the seconds of operations charged. `seconds` of operations are measured at the start where they are
    left out; with real ciphertexts each round is measured instead. `ledger`: a file at the label's holder that counts
    what all runs tell about the same labels. `reads_per_batch`: how many gradients of a batch are decrypted for each
    silo over the life of its labels, at most, counted in the ledger; if left out, as many as rounds have.
    `accept_leakage`: run also where that is too much, or where how batches are drawn, or how small they are, gives
    labels away.

    >>> PrivacySettings(encryption="paillier").point.limit
    65536.0
    """

    encryption: Literal["none", "paillier"] = "none"
    key_bits: int = KEY_BITS
    fraction_bits: int = 24
    whole_bits: int = 16
    ciphertexts: Literal["real", "costs"] = "costs"
    seconds: OperationSeconds | None = None
    ledger: str | None = None
    reads_per_batch: int | None = None
    accept_leakage: bool = False

    def __post_init__(self) -> None:
        """Refuse short keys, impossible bits, and settings without effect."""
        check_key_bits(self.key_bits)
        _ = self.point
        if self.reads_per_batch is not None and self.reads_per_batch < 1:
            raise ConfigError(f"privacy.reads_per_batch = {self.reads_per_batch}: at least 1, or leave it out")
        if self.reads_per_batch is not None and self.ledger is None and self.encrypts:
            raise ConfigError(
                f"privacy.reads_per_batch = {self.reads_per_batch} is over the life of the labels, and without a "
                "ledger nobody would know of it after a restart: name a file as privacy.ledger"
            )
        if self.encryption == "none":
            counted = () if self.ledger is None else ("ledger", "accept_leakage")
            changed = [field.name for field in fields(self) if getattr(self, field.name) != field.default]
            given = [name for name in changed if name not in counted]
            if given:
                raise ConfigError(
                    f"privacy.{given[0]} has no effect without encryption: set privacy.encryption = 'paillier', or "
                    "leave it out"
                )
        if self.ciphertexts == "real" and self.seconds is not None:
            raise ConfigError(
                "privacy.seconds has no effect on real ciphertexts, whose operations are measured: leave it out, or "
                "set privacy.ciphertexts = 'costs'"
            )

    @property
    def encrypts(self) -> bool:
        """Whether anything is encrypted."""
        return self.encryption != "none"

    @property
    def point(self) -> FixedPoint:
        """How numbers become whole ones."""
        return FixedPoint(self.fraction_bits, self.whole_bits)

    @property
    def cipher(self) -> Cipher:
        from crosshatch.privacy.exchanges.cipher import Cipher  # late, as below

        return Cipher(self.key_bits, self.point, self.seconds)

    @property
    def encrypting(self) -> MakeEncryption | None:
        """What the engine puts encrypted exchanges together with; None where nothing is encrypted."""
        if not self.encrypts:
            return None
        from crosshatch.privacy.exchanges.assemble_encrypted import encrypted_exchange

        real, accepted = self.ciphertexts == "real", self.accept_leakage
        return partial(encrypted_exchange, cipher=self.cipher, real=real, accept_leakage=accepted)
