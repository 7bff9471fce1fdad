"""How long keys are; without gmpy2, so that configs can be read where it is not installed."""

from __future__ import annotations

from crosshatch.errors import ConfigError, require_whole

KEY_BITS = 3072  # a level of security of 128 bits, as NIST SP 800-57 has it
_SAFE = 2048
_LONGEST = 7680
_STEP = 16  # n and its primes are whole bytes
_WEAKEST = 128


def check_key_bits(bits: int, *, weak: bool = False) -> None:
    """Refuse keys that protect nothing (unless `weak`, for tests), and lengths that are not whole bytes."""
    require_whole("privacy.key_bits", bits)
    least = _WEAKEST if weak else _SAFE
    if not least <= bits <= _LONGEST or bits % _STEP:
        raise ConfigError(
            f"privacy.key_bits = {bits}: must be a multiple of {_STEP}, at least {least} and at most {_LONGEST}: "
            f"{KEY_BITS} is usual, keys below {_SAFE} can be broken"
        )
