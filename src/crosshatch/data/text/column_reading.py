"""How the cells of one column are read: fixed by the training file, the same for every file after it."""

from typing import Literal

import msgspec
import polars as pl

from crosshatch.data.text.date_format import to_days
from crosshatch.data.text.number_format import NumberFormat, to_numbers
from crosshatch.errors import DataError

EXCEL_ERRORS = (
    "#N/A", "#NV", "#DIV/0!", "#VALUE!", "#WERT!", "#REF!", "#BEZUG!", "#NAME?", "#NUM!", "#ZAHL!", "#NULL!",
)  # fmt: skip
EVERYWHERE = ("NA", "N/A", "n/a", "nan", "NaN", "NAN", "null", "NULL", "?", *EXCEL_ERRORS)
"""Missing in any column, with a line that says so, unless data.csv.nulls names other words; empty cells always are."""
AMONG_NUMBERS = (
    *EVERYWHERE, "-", "--", "---", ".", "..", "None", "none", "NONE", "na", "Null", "<NA>", "n.a.", "N.A.", "n.v.",
    "k.A.", "k. A.", "missing", "Missing", "unknown", "Unknown", "NaT", "(null)",
)  # fmt: skip
"""Missing where all other cells of a column are numbers or dates, again with a line."""
PERHAPS = tuple(word for word in AMONG_NUMBERS if word not in EVERYWHERE)
"""Categories of their own in columns of text, with a line."""


Kind = Literal["number", "yes or no", "date", "text"]


class ColumnReading(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a column's cells are; `nulls` are the words of data.csv.nulls, None where they were left to the default.

    `numbers` is None for numbers as programs write them.
    """

    kind: Kind
    numbers: NumberFormat | None = None
    date: str = ""
    nulls: tuple[str, ...] | None = None

    @property
    def null_words(self) -> tuple[str, ...]:
        if self.kind == "text":
            return EVERYWHERE if self.nulls is None else self.nulls
        return AMONG_NUMBERS + (self.nulls or ())

    def known(self, cells: pl.Series) -> pl.Series:
        """The cells (n,), null where a word says that a value is missing."""
        return without(cells, self.null_words)

    def apply(self, cells: pl.Series, place: str, before: int = 0) -> pl.Series:
        """Cells (n,) without spaces around them as values; a cell that is none of the kind is refused.

        `before` is the number of rows above them in their file.
        """
        known = self.known(cells)
        values = self._values(known)
        if values.null_count() > known.null_count():
            row = int((values.is_null() & known.is_not_null()).arg_true()[0])
            raise DataError(
                f"{place}: column '{cells.name}' has '{known[row]}' in row {before + row + 1}, and it holds "
                f"{self.describe()}: correct it, or write all files in one way"
            )
        placeholders = [float(word) for word in self.nulls or () if self.kind == "number" and is_number(word)]
        if placeholders:  # -999.00 is -999
            values = pl.select(pl.when(~values.cast(pl.Float64).is_in(placeholders)).then(values)).to_series()
        return values.alias(cells.name)

    def describe(self) -> str:
        if self.kind == "number":
            return f"numbers{f' with {self.numbers.describe()}' if self.numbers else ''}"
        return {"yes or no": "true or false", "date": f"dates written {self.date}", "text": "text"}[self.kind]

    def _values(self, known: pl.Series) -> pl.Series:
        if self.kind == "number":
            return to_numbers(known) if self.numbers is None else self.numbers.parse(known)
        if self.kind == "date":
            return to_days(known, self.date)
        if self.kind == "yes or no":
            truths = known.str.to_lowercase()
            return pl.select(pl.when(truths.is_in(["true", "false"])).then(truths == "true")).to_series()
        return known


def is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def without(cells: pl.Series, words: tuple[str, ...]) -> pl.Series:
    if not words:
        return cells
    found = cells.is_in(words)
    if not found.any():
        return cells
    return pl.select(pl.when(~found).then(cells)).to_series().alias(cells.name)
