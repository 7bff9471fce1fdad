"""Numbers that may not be what they look like: placeholders for missing values, codes, identifiers, odd dates."""

import re
from collections.abc import Iterator

import polars as pl

from crosshatch.data.notes import CHOSEN, DOUBTFUL, Note, times
from crosshatch.data.text.date_format import as_days

PLACEHOLDERS = tuple(float(sign * (10**digits - 1)) for digits in range(1, 10) for sign in (1, -1))
_CODE = re.compile(
    r"(?i)(^|[^a-z])(id|nr|no|num|zip|plz|postal|postcode|code|iban|account|konto|kunde|policy|branch|phone|tel)s?($|[^a-z])"
    r"|(zip|post)_?code|[a-z](ID|Id|Nr|No|Code)$"
)
_OLD, _FAR = -25_567, 84_006  # days: before 1900, from 2200 on


def said_of_numbers(known: pl.Series, different: int, rows: int, place: str) -> Iterator[Note]:
    """Of a column of numbers without its missing ones."""
    column = f"column '{known.name}'"
    is_whole = known.dtype.is_integer()
    known = known.cast(pl.Float64)
    known = known.filter(known.is_finite())
    if not len(known):
        return
    yield from _placeholders(known, different, place)
    if not (is_whole or bool((known == known.round()).all())):
        return
    low, high = int(known.min()), int(known.max())  # type: ignore[arg-type]
    if different == len(known) == rows and rows >= 20 and high - low < 2 * rows:
        yield Note(
            "identifier", DOUBTFUL, place,
            f"{column} is another whole number in every row, {low} to {high}, like an identifier: name it in "
            "data.leave_out (or as data.id) if it is one; it is read as a number",
        )  # fmt: skip
    elif (
        low >= 19_000_101
        and high <= 22_001_231
        and not (known.head(1000).cast(pl.Int64).cast(pl.String).str.to_date("%Y%m%d", strict=False).null_count())
    ):
        yield Note(
            "date", DOUBTFUL, place,
            f"{column} looks like dates written as numbers, like {int(known[0])}: set data.csv.dates = \"%Y%m%d\" if "
            "they are; it is read as a number",
        )  # fmt: skip
    elif _CODE.search(known.name) and different > 2:
        yield Note(
            "codes", CHOSEN, place,
            f"{column} is read as a number, and its name sounds like a code: name it in data.categorical or "
            "data.leave_out if it is one",
        )  # fmt: skip


def said_of_dates(known: pl.Series, place: str) -> Iterator[Note]:
    """Of a column of dates: those that stand for "never" or "not known"."""
    days = as_days(known) if known.dtype.is_temporal() else known
    odd = int(((days <= _OLD) | (days >= _FAR)).sum())
    if odd:
        yield Note(
            "placeholder", DOUBTFUL, place,
            f"column '{known.name}' has {odd:,} dates up to 1900 or from 2200 on: if they mean a missing value, name "
            "them in data.csv.nulls",
        )  # fmt: skip


def _placeholders(known: pl.Series, different: int, place: str) -> Iterator[Note]:
    found = known.filter(known.is_in(PLACEHOLDERS))
    if not len(found) or different < 3:
        return
    others = known.filter(~known.is_in(PLACEHOLDERS))
    if others.n_unique() < 2:
        return
    low, high = float(others.min()), float(others.max())  # type: ignore[arg-type]
    for value, count in found.alias("value").value_counts(sort=True).iter_rows():
        away = value < low - (high - low) or value > high + (high - low)
        frequent = count >= 5 and different > 50 and count > 10 * len(others) / others.n_unique()
        if abs(value) >= 99 and (away or frequent):
            yield Note(
                "placeholder", DOUBTFUL, place,
                f"column '{known.name}' has {value:g} ({times(count)}), and otherwise {low:g} to {high:g}: if it means "
                f'a missing value set data.csv.nulls = ["{int(value)}"]; it is read as a number',
            )  # fmt: skip
