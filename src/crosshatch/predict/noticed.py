"""What a user should know of rows that were scored: what training did not have, what is missing, what is not used.

Numbers unlike those of training are counted batch by batch, and told in a line per column.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import log10, sqrt

import numpy as np
import polars as pl

from crosshatch.data.dataset import Array, NewRows
from crosshatch.data.encoding.encode_sequence import SequenceEncoder
from crosshatch.data.encoding.encode_table import CategoricalColumn, TableEncoder, Usual, as_text, numbers, sizes_of
from crosshatch.data.new_rows import own_name, part_of
from crosshatch.data.notes import CHOSEN, DOUBTFUL, PLAIN, Note
from crosshatch.predict.joint_model import SiloPart
from crosshatch.predict.row_batches import GivenRows

FAR = 6.0
_SHARE = 1 / FAR**2  # more than that cannot lie so far away in the training rows themselves (Chebyshev)
_FACTOR = 30.0
_SURE = 4.0  # standard errors
_KEPT = 1000  # categories of a column that are counted one by one
_NAMED = 3


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


@dataclass
class CategoriesSeen:
    """One column's values so far: how many, how many missing, and which of them training did not have."""

    count: int = 0
    missing: int = 0
    unseen: int = 0
    names: Counter[str] = field(default_factory=Counter)

    def see(self, column: CategoricalColumn, values: pl.Series) -> None:
        known = values.drop_nulls()
        self.missing += len(values) - len(known)
        self.count += len(known)
        new = known.filter(~known.is_in(column.categories))
        self.unseen += len(new)
        for name, times in new.alias("name").value_counts(name="times").sort("name").iter_rows():
            if name in self.names or len(self.names) < _KEPT:
                self.names[name] += times

    def weigh(self) -> tuple[float, str] | None:
        """How odd they are, and why; None where they are not."""
        if not self.unseen:
            return None
        named = ", ".join(f"'{name}' ({times:,})" for name, times in self.names.most_common(_NAMED))
        more = ", ..." if len(self.names) > _NAMED else ""
        what = f"{self.unseen:,} of {self.count:,} values are categories that training did not have: {named}{more}"
        return self.unseen / self.count, f"{what}; they count as none of the known ones"


@dataclass
class Noticed:
    """What was seen of the silos' `parts`, batch by batch; `ids` are the columns that identify rows."""

    parts: Sequence[SiloPart]
    ids: frozenset[str]
    _seen: dict[tuple[str, str, str], NumbersSeen | CategoriesSeen] = field(default_factory=dict)
    _used: dict[str, set[str]] = field(default_factory=dict)  # columns of each file
    _there: dict[str, list[str]] = field(default_factory=dict)

    def see(self, given: Sequence[GivenRows]) -> None:
        for part, one in zip(self.parts, given, strict=False):  # of no parts nothing is noticed
            if isinstance(part.encoder, TableEncoder):
                self._see_table(part, part.encoder, one)
            elif isinstance(part.encoder, SequenceEncoder):
                x = part_of(one.rows, part.encoder, part.name, own=one.own)
                assert not isinstance(x, pl.DataFrame)
                for k, (name, usual) in enumerate(zip(part.encoder.names, part.encoder.usual, strict=False)):
                    if usual is not None:
                        self._numbers(one.rows, part, name, NumbersSeen(usual)).see(x[..., k].ravel())

    def _see_table(self, part: SiloPart, encoder: TableEncoder, one: GivenRows) -> None:
        frame = part_of(one.rows, encoder, part.name, own=one.own)
        assert isinstance(frame, pl.DataFrame)
        origin = one.rows.source or one.rows.place
        if isinstance(one.rows.x, pl.DataFrame):
            self._there[origin] = one.rows.x.columns
            used = self._used.setdefault(origin, set())
            used.update(name for column in frame.columns for name in (column, own_name(column, part.name)))
        for column in encoder.columns:
            key = origin, part.name, column.name
            if isinstance(column, CategoricalColumn):
                seen = self._seen.setdefault(key, CategoriesSeen())
                assert isinstance(seen, CategoriesSeen)
                seen.see(column, as_text(frame[column.name], one.rows.place))
            elif column.usual is not None:
                values = numbers(frame[column.name], one.rows.place)
                self._numbers(one.rows, part, column.name, NumbersSeen(column.usual)).see(values)

    def _numbers(self, rows: NewRows, part: SiloPart, name: str, new: NumbersSeen) -> NumbersSeen:
        seen = self._seen.setdefault((rows.source or rows.place, part.name, name), new)
        assert isinstance(seen, NumbersSeen)
        return seen

    def notes(self) -> list[Note]:
        """A line per column, the most weighty first; and one per file on columns that nobody needs."""
        found = []
        for (origin, silo, name), seen in self._seen.items():
            column = f"column '{own_name(name, silo)}'"
            if odd := seen.weigh():
                code, weight = "far from training", DOUBTFUL
                if isinstance(seen, CategoriesSeen):
                    code, weight = "unseen categories", DOUBTFUL if seen.unseen == seen.count else CHOSEN
                found.append((odd[0], Note(code, weight, origin, f"{column}: {odd[1]}")))
            if seen.missing > seen.count:
                text = f"{column}: {seen.missing:,} of {seen.missing + seen.count:,} values are missing"
                note = Note("mostly missing", CHOSEN, origin, f"{text}; what training fitted stands in for them")
                found.append((seen.missing / (seen.missing + seen.count), note))
        found.sort(key=lambda one: (-one[1].weight, -one[0]))
        for origin, columns in self._there.items():
            if extra := [name for name in columns if name not in self._used[origin] | self.ids]:
                some = ", ".join(f"'{name}'" for name in extra[:8]) + (", ..." if len(extra) > 8 else "")
                found.append((0.0, Note("not needed", PLAIN, origin, f"not needed, and not looked at: {some}")))
        return [note for _, note in found]
