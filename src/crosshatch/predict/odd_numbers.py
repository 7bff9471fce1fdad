"""Numbers of new rows that are unlike those of training: counted batch by batch, told in a line per column."""

from dataclasses import dataclass
from math import log10, sqrt

import numpy as np

from crosshatch.data.dataset import Array
from crosshatch.data.encoding.usual import Usual, sizes_of

FAR = 6.0
_SHARE = 1 / FAR**2  # more than that cannot lie so far away in the training rows themselves (Chebyshev)
_FACTOR = 30.0
_SURE = 4.0  # standard errors


@dataclass
class NumbersSeen:
    """One column's numbers so far, beside what was usual in training."""

    usual: Usual
    count: int = 0
    missing: int = 0
    far: int = 0  # for a column that never varied: those that differ
    total: float = 0.0
    sized: int = 0
    sizes: float = 0.0

    def see(self, values: Array) -> None:
        """Some more values (n,), NaN where there is none."""
        known = values[~np.isnan(values)]
        self.missing += len(values) - len(known)
        self.count += len(known)
        away = np.abs(known - self.usual.mean)
        never = self.usual.deviation == 0.0
        self.far += int((away > (1e-9 * abs(self.usual.mean) if never else FAR * self.usual.deviation)).sum())
        self.total += float(known.sum())
        sizes = sizes_of(known)
        self.sized += len(sizes)
        self.sizes += float(sizes.sum())

    def weigh(self) -> tuple[float, str] | None:
        """How odd they are, and why; None where they are not."""
        if not self.count:
            return None
        if self.usual.deviation == 0.0:
            if not self.far:
                return None
            varied = f"never varied in training, and {_of(self.far, self.count, 'differ')} from what it was then"
            return self.far / self.count, f"{varied}: the model learned nothing of it"
        factor = self._factor()
        if self.far <= _SHARE * self.count and factor is None:
            return None
        said = []
        if self.far > _SHARE * self.count:
            far = _of(self.far, self.count, "lie")
            said.append(f"{far} more than {FAR:g} deviations from the mean of training")
        if factor is not None:
            larger = f"{_round(factor)} times larger" if factor > 1 else f"{_round(1 / factor)} times smaller"
            said.append(f"{'they' if said else 'its values'} are typically about {larger} than in training")
        means = f"mean {self.total / self.count:.4g} here, {self.usual.mean:.4g} in training"
        weight = max(self.far / self.count, 0.0 if factor is None else abs(log10(factor)))
        return weight, f"{' and '.join(said)} ({means}): another unit?"

    def _factor(self) -> float | None:
        """How many times larger they are than in training, by their mean size; None if that may be chance."""
        if not self.sized or self.usual.size is None:
            return None
        shift = self.sizes / self.sized - self.usual.size
        if abs(shift) < log10(_FACTOR) or abs(shift) <= _SURE * self.usual.size_deviation / sqrt(self.sized):
            return None
        return float(10.0 ** np.clip(shift, -300, 300))


def _of(some: int, count: int, does: str) -> str:
    if some == count:
        return f"its only value {does}s" if count == 1 else f"all {count:,} values {does}"
    return f"{some:,} of {count:,} values {does}{'s' if some == 1 else ''}"


def _round(factor: float) -> str:
    return f"{float(f'{factor:.1g}'):,.0f}"
