"""Fixed point: real numbers as whole ones, with a stated step and range; what lies outside is refused."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from crosshatch.errors import ConfigError, DivergenceError, TrainingError, require_whole

Whole = npt.NDArray[np.int64]
_FEWEST_FRACTION_BITS = 8
_MOST_BITS = 60  # with a sign, and a rounding up, they fit into 64
_LIMB = 20  # bits: products of two limbs fit into 64 bits, also 2^22 of them added up
_MOST_ROWS = 2**22


@dataclass(frozen=True)
class FixedPoint:
    """Numbers between -2^whole_bits and 2^whole_bits as multiples of 2^-fraction_bits.

    >>> point = FixedPoint(fraction_bits=8, whole_bits=4)
    >>> point.encode(np.array([-1.5, 0.001, 15.99]))
    array([-384,    0, 4093])
    >>> point.decode([-384 * 256], factors=2)
    array([-1.5])
    """

    fraction_bits: int = 24
    whole_bits: int = 16

    def __post_init__(self) -> None:
        """Refuse what does not fit into 64 bits."""
        most = _MOST_BITS - _FEWEST_FRACTION_BITS
        for name, bits, least in (
            ("fraction_bits", self.fraction_bits, _FEWEST_FRACTION_BITS),
            ("whole_bits", self.whole_bits, 0),
        ):
            require_whole(f"privacy.{name}", bits)
            if not least <= bits <= most:
                raise ConfigError(f"privacy.{name} = {bits}: must be at least {least} and at most {most}")
        if self.bits > _MOST_BITS:
            raise ConfigError(
                f"privacy.fraction_bits = {self.fraction_bits} with privacy.whole_bits = {self.whole_bits}: at most "
                f"{_MOST_BITS} together: lower one of them"
            )

    @cached_property
    def bits(self) -> int:
        """Of a number without its sign."""
        return self.fraction_bits + self.whole_bits

    @cached_property
    def bound(self) -> int:
        """No encoded number is larger in magnitude."""
        return 1 << self.bits

    @cached_property
    def limit(self) -> float:
        """Nor is a number that is encoded larger than this."""
        return 2.0**self.whole_bits

    def encode(self, values: npt.NDArray[np.floating], what: str = "a number", *, trained: bool = False) -> Whole:
        """The nearest multiples; an error where one is not finite or outside of the range.

        Numbers that training makes (`trained`) outgrow the range by diverging; others are too large from the start.
        """
        exact = np.asarray(values, dtype=np.float64)
        if not np.isfinite(exact).all():
            raise TrainingError(f"{what} is not finite")
        outside = np.abs(exact) > self.limit
        if outside.any():
            said = (
                f"privacy.whole_bits = {self.whole_bits}: fixed point goes from -{self.limit:g} to {self.limit:g}, and "
                f"{what} is {exact[outside].flat[0]:.6g}: raise whole_bits, or "
            )
            if trained:
                raise DivergenceError(f"{said}take a smaller step size if training has made it so large")
            raise ConfigError(f"{said}standardise what is so large")
        whole: Whole = np.rint(np.ldexp(exact, self.fraction_bits)).astype(np.int64)
        return whole

    def decode(self, numbers: Sequence[int], *, factors: int = 1, divisor: int = 1) -> npt.NDArray[np.float64]:
        """Sums of products of so many encoded numbers, over a divisor: each rounded once."""
        scale = divisor << (factors * self.fraction_bits)
        return np.array([number / scale for number in numbers], dtype=np.float64)


def exact_products(left: Whole, right: Whole) -> list[int]:
    """`left.T @ right` row by row, of matrices (n, a) and (n, b) of whole numbers up to 2^60, without any overflow.

    >>> exact_products(np.array([[2**60], [-1]]), np.array([[2**60], [5]])) == [2**120 - 5]
    True
    """
    assert len(left) <= _MOST_ROWS
    total = np.zeros((left.shape[1], right.shape[1]), dtype=object)
    for i, low in enumerate(_limbs(left)):
        for k, high in enumerate(_limbs(right)):
            total += (low.T @ high).astype(object) << (_LIMB * (i + k))
    return [int(number) for number in total.flat]


def _limbs(numbers: Whole) -> list[Whole]:
    """Whole numbers as sums of limbs times powers of 2^20; the last limb has the sign."""
    limbs = []
    while numbers.size and (numbers.max() >= 1 << _LIMB or numbers.min() < -(1 << _LIMB)):
        limbs.append(numbers & ((1 << _LIMB) - 1))
        numbers = numbers >> _LIMB
    return [*limbs, numbers]
