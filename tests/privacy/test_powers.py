"""Powers by tables and all at once, against one power after the other."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import pytest
from gmpy2 import mpz
from hypothesis import given
from hypothesis import strategies as st

from crosshatch.privacy.powers import FixedBase, multiplications, products_of_powers, signed_digits
from tests.privacy.keys import seeded

MODULUS = mpz(2**521 - 1)


@given(st.integers(0, 2**64 - 1))
def test_fixed_base(exponent: int) -> None:
    table = FixedBase.of(mpz(3), MODULUS, 64)
    assert table.power(exponent) == pow(3, exponent, int(MODULUS))


@given(st.lists(st.integers(-(2**61) + 1, 2**61 - 1), min_size=1, max_size=5))
def test_signed_digits(numbers: list[int]) -> None:
    digits = signed_digits(np.array(numbers))
    for i, number in enumerate(numbers):
        places = [int(digit) for digit in digits[:, i]]
        assert sum(digit << place for place, digit in enumerate(places)) == number
        assert all(digit == 0 or (digit % 2 and abs(digit) < 16) for digit in places)
        assert all(np.count_nonzero(places[k : k + 5]) <= 1 for k in range(len(places)))


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("rows", [1, 7, 40])
def test_products_of_powers(rows: int, threads: int) -> None:
    draw = seeded(rows)
    bases = [mpz(draw(500) + 2) for _ in range(rows)]
    edges = [0, 1, -1, 2**60, -(2**60)]
    exponents = np.array([[draw(40) - 2**39, edges[i % 5], 1, 0] for i in range(rows)])
    found = products_of_powers(bases, exponents, MODULUS, threads=threads)
    modulus = int(MODULUS)
    for column, value in enumerate(found):
        powers = [pow(int(base), int(exponents[i, column]), modulus) for i, base in enumerate(bases)]
        assert value == prod(powers) % modulus


def test_fewer_multiplications_than_one_after_the_other() -> None:
    exponents = np.array([[seeded(1)(26) for _ in range(15)] for _ in range(256)])
    one_after_the_other = sum(int(e).bit_length() + int(e).bit_count() for e in exponents.flat)
    assert multiplications(exponents, threads=2) < one_after_the_other / 5


def test_multiplications_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Against a number that counts itself."""

    class Counted:
        made = 0

        def __init__(self, value: int) -> None:
            self.value = value

        def __mul__(self, other: Any) -> Counted:
            Counted.made += 1
            return Counted(self.value * getattr(other, "value", other))

        __rmul__ = __mul__

        def __mod__(self, modulus: int) -> Counted:
            return Counted(self.value % int(modulus))

        def __ne__(self, other: object) -> bool:
            return self.value != getattr(other, "value", other)

        __hash__ = None  # type: ignore[assignment]

    import crosshatch.privacy.powers as under_test

    monkeypatch.setattr(under_test, "mpz", Counted)
    monkeypatch.setattr(under_test, "invert", lambda number, modulus: Counted(pow(number.value, -1, int(modulus))))
    draw = seeded(3)
    exponents = np.array([[draw(27) - 2**26 for _ in range(6)] for _ in range(64)])
    bases = [Counted(draw(100) + 2) for _ in range(64)]
    products_of_powers(bases, exponents, MODULUS, threads=1)
    assert abs(Counted.made / multiplications(exponents, threads=1) - 1) < 0.02
