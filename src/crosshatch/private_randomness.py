"""Private randomness: nobody else can recompute it, the party itself can after a crash.

Masks, noise and encryption come from 256 bits that a party takes from the operating system once per run and keeps with
its state. They are expanded by SHAKE-256 with the run, the message's receiver and key, *and a digest of the numbers
that are covered and of the message that is answered*: a party that was set back to an earlier state and is told
something else under the same key covers its other numbers with other randomness. What the shared seed draws is in
`crosshatch.seeds`; that generator is not cryptographic.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import sha256, shake_256

import numpy as np
import numpy.typing as npt
from torch import Tensor

from crosshatch.errors import RunError

_BYTES = 32
_LENGTH = 8  # bytes before every piece that say how long it is: no two lists of pieces read alike


@dataclass(frozen=True)
class Covering:
    """One message that randomness is for: its receiver and key, the numbers it covers and the message it answers.

    `key` is round, exchange, and how many times the exchange was used before in that round.
    """

    to: str
    key: tuple[int, str, int]
    numbers: Sequence[Tensor]
    answers: bytes = b""


@dataclass(frozen=True)
class PrivateSeed:
    """A party's secret of one run. It belongs to the stored state, and is stored before anything drawn from it is sent.

    >>> import torch
    >>> seed = PrivateSeed.fresh("0badcafe")
    >>> one, other = (Covering("hub-0", (3, "average", 0), (torch.full((2,), x),)) for x in (1.0, 2.0))
    >>> again, mask = seed.draw("mask", one, 16), seed.draw("mask", one, 16)
    >>> mask == again, mask == seed.draw("mask", other, 16)
    (True, False)
    """

    run: str
    secret: bytes = field(repr=False)

    def __post_init__(self) -> None:
        if len(self.secret) != _BYTES:
            raise RunError(f"a party's secret has {len(self.secret)} bytes instead of {_BYTES}: is its state whole?")

    @classmethod
    def fresh(cls, run: str) -> PrivateSeed:
        return cls(run, secrets.token_bytes(_BYTES))

    def draw(self, purpose: str, message: Covering, count: int) -> bytes:
        """So many bytes for one purpose (a mask, noise) of one message."""
        round, exchange, use = message.key
        names = (purpose, self.run, message.to, exchange)
        numbers = (round, use, count)
        pieces = (
            self.secret,
            *(name.encode() for name in names),
            *(number.to_bytes(_LENGTH, "little", signed=True) for number in numbers),
            _digest(message.numbers),
            sha256(message.answers).digest(),
        )
        return shake_256(b"".join(len(one).to_bytes(_LENGTH, "little") + one for one in pieces)).digest(count)

    def normal(self, purpose: str, message: Covering, count: int) -> npt.NDArray[np.float64]:
        """So many numbers (count,) from the standard normal distribution, two of every two by Box and Muller."""
        pairs = (count + 1) // 2
        bits = np.frombuffer(self.draw(purpose, message, 16 * pairs), dtype="<u8") >> np.uint64(11)
        uniform = ((bits + 1.0) * 2.0**-53).reshape(2, pairs)  # above 0, at most 1: the logarithm is finite
        radius, angle = np.sqrt(-2.0 * np.log(uniform[0])), 2.0 * np.pi * uniform[1]
        return np.concatenate([radius * np.cos(angle), radius * np.sin(angle)])[:count]


def _digest(tensors: Sequence[Tensor]) -> bytes:
    found = sha256()
    for one in tensors:
        about = f"{one.dtype} {tuple(one.shape)};".encode()
        found.update(about + one.detach().cpu().contiguous().numpy().tobytes())
    return found.digest()
