"""Gradients of a transfer task from hidden numbers: ciphertexts and counted numbers against loops over integers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crosshatch.errors import ConfigError, DivergenceError
from crosshatch.privacy.counted_matrix import CountedMatrix
from crosshatch.privacy.encrypted_matrix import EncryptedMatrix
from crosshatch.privacy.fixed_point import FixedPoint
from crosshatch.privacy.packing import Slots
from crosshatch.privacy.transfer_gradients import (
    OwnPass,
    Plain,
    decode,
    gradient_with_labels,
    gradient_without_labels,
    sum_of_signs,
    transfer_slots,
    whole_square,
)
from tests.privacy.keys import seeded, short_key

POINT = FixedPoint(fraction_bits=12, whole_bits=4)
KEY = short_key(512)
N, D, HID, IN = 5, 3, 2, 4
Hide = Callable[[Any, int], Any]


def encrypted(numbers: Any, bound: int) -> EncryptedMatrix:
    return EncryptedMatrix.of(KEY, np.asarray(numbers, dtype=object), bound, draw=seeded(2))


def counted(numbers: Any, bound: int) -> CountedMatrix:
    return CountedMatrix(np.asarray(numbers, dtype=object), bound, Counter())


def opened(matrix: Any) -> list[int]:
    if isinstance(matrix, EncryptedMatrix):
        return matrix.decrypt(KEY)
    return [int(number) for number in matrix.values.flat]


def draw(seed: int, *shape: int, largest: bool = False) -> Any:
    random = np.random.default_rng(seed)
    if largest:
        return random.choice([-POINT.bound, POINT.bound], shape)
    return random.integers(-POINT.bound, POINT.bound, shape, endpoint=True) * random.integers(0, 2, shape)


def told(hide: Hide, seed: int, largest: bool) -> tuple[Any, Any, Any, Any]:
    """Rows at twice the bits and a symmetric matrix, hidden and in clear."""
    rows = draw(seed, N, D, largest=largest).astype(object) << POINT.fraction_bits
    half = draw(seed + 1, 1, D * (D + 1) // 2, largest=largest)
    square = half.ravel()[whole_square(D)]
    assert (square == square.T).all()
    longer = POINT.bound << POINT.fraction_bits
    return hide(rows, longer), hide(half, POINT.bound).take(whole_square(D)), rows, square


def by_loops(at_outputs: Any, inputs: Any, back: Any = None) -> list[int]:
    """(outputs, i) of one layer, sum over samples; through `back` (n, d, h) first where it is given."""
    rows = [[int(v) for v in row] for row in at_outputs]
    if back is not None:
        rows = [
            [sum(row[c] * int(back[i, c, k]) for c in range(D)) for k in range(back.shape[2])]
            for i, row in enumerate(rows)
        ]
    return [
        sum(rows[i][o] * int(inputs[i, x]) for i in range(len(rows)))
        for o in range(len(rows[0]))
        for x in range(inputs.shape[1])
    ]


@pytest.mark.parametrize("hide", [encrypted, counted])
@pytest.mark.parametrize("largest", [False, True])
@pytest.mark.parametrize("layers", [1, 2])
@settings(max_examples=5)
@given(seed=st.integers(0, 10**6))
def test_without_labels(hide: Hide, layers: int, largest: bool, seed: int) -> None:
    rows, square, clear_rows, clear_square = told(hide, seed, largest)
    half = draw(seed + 2, N, D, largest=largest)
    x, taken = draw(seed + 3, N, IN, largest=largest), draw(seed + 4, N, HID + 1, largest=largest)
    back = draw(seed + 5, N, D, HID, largest=largest)
    own = OwnPass((x,)) if layers == 1 else OwnPass((x, taken), back)
    found = gradient_without_labels(rows, square, half, own, POINT.bound, threads=2)
    at_outputs = clear_rows + half.astype(object) @ clear_square.astype(object)
    wanted = [by_loops(at_outputs, x)]
    if layers == 2:
        wanted = [by_loops(at_outputs, x, back), by_loops(at_outputs, taken)]
    assert [opened(one) for one in found] == wanted
    slots = transfer_slots(POINT, N, D, layers, 512)
    assert all(one.bound <= slots.bound for one in found)
    assert all(abs(number) <= one.bound for one in found for number in opened(one))


@pytest.mark.parametrize("hide", [encrypted, counted])
@pytest.mark.parametrize("largest", [False, True])
@pytest.mark.parametrize("aligned", [False, True])
@pytest.mark.parametrize("layers", [1, 2])
@settings(max_examples=5)
@given(seed=st.integers(0, 10**6))
def test_with_labels(hide: Hide, layers: int, aligned: bool, largest: bool, seed: int) -> None:
    rows, square, clear_rows, clear_square = told(hide, seed, largest)
    signs = np.random.default_rng(seed).choice([-1, 1], N)
    times_mean = draw(seed + 2, D, largest=largest)
    x, taken = draw(seed + 3, N, IN, largest=largest), draw(seed + 4, N, HID + 1, largest=largest)
    back, weight = draw(seed + 5, N, D, HID, largest=largest), draw(seed + 6, 1, D, HID, largest=largest)
    mean_x, mean_taken = draw(seed + 7, 1, IN), draw(seed + 8, 1, HID + 1)
    slopes = draw(seed + 9, HID, 1, IN, largest=largest)
    samples = OwnPass((x,)) if layers == 1 else OwnPass((x, taken), back)
    mean = OwnPass((mean_x,)) if layers == 1 else OwnPass((slopes, mean_taken), weight)
    signed = sum_of_signs(rows, signs, threads=1)
    found = gradient_with_labels(
        rows, square, signed, times_mean, mean, samples if aligned else None, POINT.bound, threads=2
    )
    at_mean = -signs.astype(object) @ clear_rows + clear_square.astype(object) @ times_mean.astype(object)
    if layers == 1:
        wanted = [by_loops(at_mean[None], mean_x)]
        more = [by_loops(clear_rows, x)]
    else:
        below = [sum(int(at_mean[c]) * int(weight[0, c, k]) for c in range(D)) for k in range(HID)]
        first = [below[k] * int(slopes[k, 0, i]) for k in range(HID) for i in range(IN)]
        wanted = [first, by_loops(at_mean[None], mean_taken)]
        more = [by_loops(clear_rows, x, back), by_loops(clear_rows, taken)]
    if aligned:
        wanted = [[a + b for a, b in zip(*pair, strict=True)] for pair in zip(wanted, more, strict=True)]
    assert [opened(one) for one in found] == wanted
    assert all(one.bound <= transfer_slots(POINT, N, D, layers, 512).bound for one in found)


def test_what_is_hidden_is_encoded_with_room_for_a_product() -> None:
    plain = Plain.of(np.array([[1.5, -16.0]]), np.array([[1.0, 2.0], [2.0, 4.0]]), POINT, "a number")
    assert plain.rows.tolist() == [[int(1.5 * 2**24), -16 * 2**24]]
    assert plain.half.tolist() == [[1 << 12, 2 << 12, 4 << 12]]
    assert plain.size == 5
    with pytest.raises(DivergenceError, match=r"from -16 to 16, and a number is 16\.5"):
        Plain.of(np.array([[16.5]]), np.array([[1.0]]), POINT, "a number")
    longest = FixedPoint(fraction_bits=40, whole_bits=20)
    assert Plain.of(np.array([[-(2.0**20)]]), np.zeros((1, 1)), longest, "").rows.item() == -(2**100)  # nothing wraps


def test_numbers_too_long_for_the_key_are_refused() -> None:
    with pytest.raises(ConfigError, match="do not fit under a key of 240"):
        transfer_slots(FixedPoint(40, 20), 64, 8, 2, 240)
    assert isinstance(transfer_slots(FixedPoint(), 64, 8, 2, 512), Slots)


def test_layers_are_decoded_by_their_factors() -> None:
    one = 1 << 12
    found = decode([3 * 2 * 10 * one**4, -2 * 10 * one**3, 10 * one**3], [1, 2], POINT, 10)
    assert found.tolist() == [3.0, -1.0, 0.5]


def test_operations_are_counted_as_ciphertexts_take_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Multiplications that are made under the encryption, against those that are counted without it."""
    import crosshatch.privacy.encrypted_matrix as under_test
    from crosshatch.privacy.powers import multiplications, products_of_powers

    made = []

    def noted(bases: Any, exponents: Any, modulus: Any, *, threads: int) -> Any:
        made.append(multiplications(exponents, threads=threads) + 5 * exponents.shape[1])
        return products_of_powers(bases, exponents, modulus, threads=threads)

    monkeypatch.setattr(under_test, "products_of_powers", noted)
    own = OwnPass((draw(3, N, IN), draw(4, N, HID + 1)), draw(5, N, D, HID))
    half = draw(2, N, D)
    rows, square, _, _ = told(encrypted, 1, False)
    gradient_without_labels(rows, square, half, own, POINT.bound, threads=1)
    rows, square, _, _ = told(counted, 1, False)
    counter: Counter[str] = Counter()
    rows, square = (CountedMatrix(one.values, one.bound, counter) for one in (rows, square))
    gradient_without_labels(rows, square, half, own, POINT.bound, threads=1)
    assert counter == {"multiply": sum(made) + N * D}  # and the sum of both parts
