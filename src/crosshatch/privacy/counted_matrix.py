"""Clear numbers in the place of encrypted ones: the same sums and products, and how many operations they are."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from crosshatch.privacy.fixed_point import Whole
from crosshatch.privacy.powers import multiplications, multiplications_each

_INVERSION = 5  # takes as long as so many multiplications


@dataclass(frozen=True)
class CountedMatrix:
    """Numbers (rows, columns) of any length, none larger in magnitude than `bound`; see `EncryptedMatrix`."""

    values: npt.NDArray[np.object_]
    bound: int
    made: Counter[str]  # operations so far, of all matrices of a party together

    @property
    def shape(self) -> tuple[int, int]:
        rows, columns = self.values.shape
        return rows, columns

    def _with(self, values: npt.NDArray[np.object_], bound: int, multiply: int) -> CountedMatrix:
        self.made["multiply"] += multiply
        return CountedMatrix(values, bound, self.made)

    def __add__(self, other: CountedMatrix) -> CountedMatrix:
        """The sum of two matrices."""
        return self._with(self.values + other.values, self.bound + other.bound, self.values.size)

    @property
    def T(self) -> CountedMatrix:  # noqa: N802 - as arrays have it
        return self._with(self.values.T, self.bound, 0)

    def transposed_product(self, numbers: Whole, bound: int, *, threads: int = 1) -> CountedMatrix:
        """This matrix, transposed, times a clear one (rows, k) of numbers up to `bound`: (columns, k)."""
        rows, columns = self.shape
        made = columns * (multiplications(numbers, threads=threads) + _INVERSION * numbers.shape[1])
        return self._with(self.values.T @ numbers.astype(object), rows * self.bound * bound, made)

    def each_row_times(self, numbers: Whole, bound: int, *, threads: int = 1) -> CountedMatrix:  # noqa: ARG002
        """Each row times a clear matrix of its own, (rows, columns, k) of numbers up to `bound`: (rows, k)."""
        rows, columns, k = numbers.shape
        made = multiplications_each(numbers) + _INVERSION * rows * k
        values = np.matmul(self.values[:, np.newaxis], numbers.astype(object))[:, 0]
        return self._with(values, columns * self.bound * bound, made)

    def take(self, places: npt.NDArray[np.int64]) -> CountedMatrix:
        """The numbers at these places (rows, columns), counted row by row."""
        return self._with(self.values.ravel()[places], self.bound, 0)
