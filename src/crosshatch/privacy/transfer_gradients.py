"""Gradients of two silos that learn from each other, each from what the other one hides.

u_A, u_B: embeddings (n, d)   y: labels as -1 and +1   Phi: mean of y u_A over all of A's samples   g: alignment weight

With the second-order form of the logistic loss, 2 n times the gradients at the outputs are linear in the other's part:

    at Phi     - sum over i of y_i u_B,i + n M Phi / 2      M: mean of u_B u_B^T (d, d)       B hides u_B and M
    at u_A,i   - 2 g u_B,i
    at u_B,i   v_i + P u_B,i / 2                            v_i = - y_i Phi - 2 g u_A,i       A hides v and P
                                                            P = Phi Phi^T (d, d)

Each side goes back through its own layers from there, with clear numbers times encrypted ones. Whatever does the adding
and multiplying (`Hidden`), ciphertexts or numbers that count operations, the results are the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, Self, TypeVar

import numpy as np
import numpy.typing as npt

from crosshatch.privacy.fixed_point import FixedPoint, Whole
from crosshatch.privacy.packing import Slots


class Hidden(Protocol):
    """A matrix of encrypted whole numbers; see `EncryptedMatrix`."""

    @property
    def shape(self) -> tuple[int, int]: ...

    def __add__(self, other: Self) -> Self:
        """The sum of two matrices."""
        ...

    @property
    def T(self) -> Self:  # noqa: N802 - as arrays have it
        ...

    def transposed_product(self, numbers: Whole, bound: int, *, threads: int = 1) -> Self:
        """This matrix, transposed, times a clear one."""
        ...

    def each_row_times(self, numbers: Whole, bound: int, *, threads: int = 1) -> Self:
        """Each row times a clear matrix of its own."""
        ...

    def take(self, places: npt.NDArray[np.int64]) -> Self:
        """The numbers at these places."""
        ...


H = TypeVar("H", bound=Hidden)


@dataclass(frozen=True)
class Plain:
    """What one side is to hide from the other: rows (n, d), and a symmetric matrix (d, d) as the half of it."""

    rows: npt.NDArray[np.object_]  # twice the bits of fixed point: what it is added to is a product
    half: Whole  # (1, d (d + 1) / 2)

    @classmethod
    def of(
        cls, rows: npt.NDArray[np.floating], square: npt.NDArray[np.floating], point: FixedPoint, what: str
    ) -> Plain:
        """Encode both; `what` names a number where it is outside of the range."""
        upper = square[np.triu_indices(len(square))][np.newaxis]
        whole = point.encode(rows, what, trained=True).astype(object)
        longer: npt.NDArray[np.object_] = np.left_shift(whole, point.fraction_bits)
        return cls(longer, point.encode(upper, what, trained=True))

    @property
    def size(self) -> int:
        return self.rows.size + self.half.size


def whole_square(width: int) -> npt.NDArray[np.int64]:
    """Where each number of a symmetric matrix (d, d) stands in the half of it.

    >>> whole_square(3).tolist()
    [[0, 1, 2], [1, 3, 4], [2, 4, 5]]
    """
    places = np.zeros((width, width), dtype=np.int64)
    upper = np.triu_indices(width)
    places[upper] = np.arange(len(upper[0]))
    return places + np.triu(places, 1).T


@dataclass(frozen=True)
class OwnPass:
    """A side's clear numbers on the way back through its one or two layers.

    `inputs`, first layer first: what each layer takes, (n, i) with ones for a bias. `back` (n, d, h): the derivative of
    every output by every hidden unit before its activation; None: one layer. For the mean of all samples there is one
    row, n = 1, and the first of two layers has inputs of its own for every hidden unit, (h, 1, i).
    """

    inputs: tuple[Whole, ...]
    back: Whole | None = None


def backwards(hidden: H, own: OwnPass, bound: int, *, threads: int) -> list[H]:
    """From encrypted numbers at the outputs (n, d) to those at the layers (outputs, i) each, first layer first."""
    last = hidden.transposed_product(own.inputs[-1], bound, threads=threads)
    if own.back is None:
        return [last]
    below = hidden.each_row_times(own.back, bound, threads=threads)
    if own.inputs[0].ndim == 3:
        return [below.T.each_row_times(own.inputs[0], bound, threads=threads), last]
    return [below.transposed_product(own.inputs[0], bound, threads=threads), last]


def sum_of_signs(rows: H, signs: Whole, *, threads: int) -> H:
    """What A makes of u_B once per round: minus the sum of y u_B, (d, 1)."""
    return rows.transposed_product(-signs[:, np.newaxis], 1, threads=threads)


def gradient_with_labels(
    rows: H,
    square: H,
    signed: H,
    times_mean: Whole,
    mean: OwnPass,
    samples: OwnPass | None,
    bound: int,
    *,
    threads: int,
) -> list[H]:
    """A's gradient: `times_mean` (d,) is n Phi / 2, `samples` have -2 g in them; None where nothing is aligned."""
    at_mean = signed + square.transposed_product(times_mean[:, np.newaxis], bound, threads=threads)
    found = backwards(at_mean.T, mean, bound, threads=threads)
    if samples is None:
        return found
    aligned = backwards(rows, samples, bound, threads=threads)
    return [one + other for one, other in zip(found, aligned, strict=True)]


def gradient_without_labels(
    rows: H, square: H, half_outputs: Whole, own: OwnPass, bound: int, *, threads: int
) -> list[H]:
    """B's gradient: `half_outputs` (n, d) are u_B / 2."""
    at_outputs = rows + square.transposed_product(half_outputs.T, bound, threads=threads).T
    return backwards(at_outputs, own, bound, threads=threads)


def transfer_slots(point: FixedPoint, rows: int, width: int, layers: int, key_bits: int) -> Slots:
    """How the numbers of a gradient go back: none can be larger, whatever the sides hide and know."""
    reach = rows * (width + 2) * point.bound**3
    return Slots(reach * width * point.bound if layers > 1 else reach, key_bits)


def decode(numbers: Sequence[int], sizes: Sequence[int], point: FixedPoint, rows: int) -> npt.NDArray[np.float64]:
    """The gradient of the mean loss, from all layers' whole numbers with so many of them each, the first one first."""
    pieces, begin = [], 0
    for number, size in enumerate(sizes):
        factors = 3 + len(sizes) - 1 - number
        pieces.append(point.decode(numbers[begin : begin + size], factors=factors, divisor=2 * rows))
        begin += size
    return np.concatenate(pieces)
