"""What a user should know of rows that were scored: what training did not have, what is missing, what is not used."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import polars as pl

from crosshatch.data.dataset import NewRows
from crosshatch.data.encoding.encode_sequence import SequenceEncoder
from crosshatch.data.encoding.encode_table import CategoricalColumn, TableEncoder, as_text, numbers
from crosshatch.data.new_rows import own_name, part_of
from crosshatch.data.notes import CHOSEN, DOUBTFUL, PLAIN, Note
from crosshatch.predict.align_rows import GivenRows
from crosshatch.predict.odd_numbers import NumbersSeen
from crosshatch.predict.silo_part import SiloPart

_KEPT = 1000  # categories of a column that are counted one by one
_NAMED = 3


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
