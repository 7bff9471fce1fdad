"""How numbers are encrypted, and how long what is sent of them is."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from crosshatch.privacy.fixed_point import FixedPoint
from crosshatch.privacy.operations import OperationSeconds
from crosshatch.protocol.message_contents import Specs


@dataclass(frozen=True)
class Cipher:
    """`seconds` of operations are charged where nothing is encrypted; None: they are measured."""

    key_bits: int
    point: FixedPoint
    seconds: OperationSeconds | None = None

    def ciphertexts(self, count: int) -> Specs:
        """So many of them: each is twice as long as the key."""
        return ((torch.uint8, (count, self.key_bits // 4)),)

    def plaintexts(self, count: int) -> Specs:
        """So many decrypted numbers, each as long as the key."""
        return ((torch.uint8, (count, self.key_bits // 8)),)
