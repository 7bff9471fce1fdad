"""What the columns of a table are for: to learn from, or better not; with a line where a user should know.

Numbers may not be what they look like: placeholders for missing values, codes, identifiers, odd dates.
"""

import re
from collections.abc import Collection, Iterator, Mapping

import polars as pl

from crosshatch.data.looking.seen import ColumnKind, ColumnSeen
from crosshatch.data.notes import CHOSEN, DOUBTFUL, PLAIN, Note, times
from crosshatch.data.text.column_reading import ColumnReading
from crosshatch.data.text.date_format import as_days

PLACEHOLDERS = tuple(float(sign * (10**digits - 1)) for digits in range(1, 10) for sign in (1, -1))
_CODE = re.compile(
    r"(?i)(^|[^a-z])(id|nr|no|num|zip|plz|postal|postcode|code|iban|account|konto|kunde|policy|branch|phone|tel)s?($|[^a-z])"
    r"|(zip|post)_?code|[a-z](ID|Id|Nr|No|Code)$"
)
_OLD, _FAR = -25_567, 84_006  # days: before 1900, from 2200 on
MANY = 50
"""Categories from which on a line says how many there are."""
_MOST_COMPARED = 2000
_SENTENCE = 3  # words
_ONCE_OF = 10  # rows per category, from which on one that occurs once is odd


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


def look_at(
    frame: pl.DataFrame,
    readings: Mapping[str, ColumnReading],
    place: str,
    *,
    ids: Collection[str],
    labels: Collection[str],
    unused: Collection[str],
    forced: Collection[str],
    examples: Mapping[str, str],
) -> tuple[tuple[ColumnSeen, ...], tuple[Note, ...], tuple[str, ...]]:
    """The columns of a table in order, what is to be said of them, and those that nobody shall train on.

    Text that is another in nearly every row is left out, unless it is `forced`, and so is what is always empty.
    """
    columns, left_out = [], []
    notes: list[Note] = []
    for series in frame:
        name = series.name
        if series.dtype in (pl.Categorical, pl.Enum):
            series = series.cast(pl.String)
        elif series.dtype.is_nested() or series.dtype in (pl.Binary, pl.Object, pl.Duration, pl.Time):
            columns.append(ColumnSeen(name, "category", series.null_count(), 0))  # refused where it is used
            continue
        reading = readings.get(name, ColumnReading("text"))
        known = series.drop_nulls()
        different = known.n_unique()
        kind: ColumnKind = "id" if name in ids else "label" if name in labels else _kind(known, different, reading)
        missing = series.null_count()
        if kind not in ("id", "label") and name not in unused:
            if kind in ("identifier", "free text", "empty"):
                if name in forced:
                    kind = "category"
                else:
                    left_out.append(name)
            notes += _said(series, known, different, kind, reading, place, forced=name in forced)
        example = examples.get(name, str(known[0]) if len(known) else "")
        out = name in left_out or name in unused
        columns.append(ColumnSeen(name, kind, missing, different, example, out))
    return tuple(columns), tuple(notes), tuple(left_out)


def _kind(known: pl.Series, different: int, reading: ColumnReading) -> ColumnKind:
    if not len(known):
        return "empty"
    if known.dtype.is_temporal() or reading.kind == "date":
        return "date"
    if different == 1:
        return "constant"
    if known.dtype == pl.Boolean:
        return "yes or no"
    if known.dtype != pl.String:
        return "number"
    rows = len(known)
    if not ((different > 0.9 * rows and rows >= 10) or (different > 20 and different > 0.5 * rows)):
        return "category"
    words = known.head(1000).str.count_matches(r"\S+").mean()
    return "free text" if float(words) > _SENTENCE else "identifier"  # type: ignore[arg-type]


def _said(
    series: pl.Series, known: pl.Series, different: int, kind: ColumnKind, reading: ColumnReading, place: str, *,
    forced: bool,
) -> Iterator[Note]:  # fmt: skip
    name, rows, missing = series.name, len(series), series.null_count()
    column = f"column '{name}'"
    if kind == "empty":
        yield Note("empty", CHOSEN, place, f"{column} has no values: it is left out")
        return
    if kind in ("identifier", "free text"):
        what = "text that is another in nearly every row" if kind == "identifier" else "free text"
        yield Note(
            kind, CHOSEN, place,
            f"{column} is left out: {what} ({different:,} different in {len(known):,} rows, like "
            f"'{_short(known[0])}'); name it in data.categorical to use it nevertheless",
        )  # fmt: skip
        return
    if 2 * missing > rows:
        yield Note("mostly missing", CHOSEN, place, f"{column} is mostly missing, in {missing:,} of {rows:,} rows")
    if kind == "constant" and not missing:
        yield Note(
            "constant", PLAIN, place, f"{column} is '{_short(known[0])}' in all rows: nothing can be learned of it"
        )
    if kind == "number":
        yield from said_of_numbers(known, different, rows, place)
    if kind == "date":
        yield from said_of_dates(known, place)
    if kind == "category" and known.dtype == pl.String:
        yield from _said_of_categories(known, different, reading, place, forced=forced)


def _said_of_categories(
    known: pl.Series, different: int, reading: ColumnReading, place: str, *, forced: bool
) -> Iterator[Note]:
    column = f"column '{known.name}'"
    categories = known.unique(maintain_order=True)
    if reading.kind == "text" and categories.str.contains(r"^[+-]?\d+$").all():
        padded = categories.filter(categories.str.contains(r"^[+-]?0\d"))
        long = categories.filter(categories.str.len_chars() > 15)
        what = "leading zeros" if len(padded) else "more than 15 digits" if len(long) else "numbers as text"
        yield Note(
            "codes", CHOSEN, place,
            f"{column} has {what}, like '{[*padded[:1], *long[:1], categories[0]][0]}': they are categories; name it "
            "in data.csv.numbers (in Parquet, store numbers) if they are numbers",
        )  # fmt: skip
    if different > MANY:
        yield Note(
            "many categories", CHOSEN, place, f"{column} has {different:,} categories: as many columns of 0 and 1"
        )
    if different > _MOST_COMPARED or forced:
        return
    counts = known.alias("value").value_counts()
    once = counts.filter(counts["count"] == 1)["value"]
    if len(once) and len(known) >= _ONCE_OF * different:
        some = ", ".join(f"'{_short(value)}'" for value in sorted(once.to_list())[:3])
        yield Note("rare category", PLAIN, place, f"{column} has categories that occur once, {some}: slips?")
    folded = categories.str.to_lowercase().str.replace_all(r"[\s_\-.]+", " ")
    for same in folded.filter(folded.is_duplicated()).unique(maintain_order=True)[:3]:
        alike = ", ".join(f"'{value}'" for value in categories.filter(folded == same).to_list()[:4])
        yield Note(
            "alike", DOUBTFUL, place, f"{column} has categories that look alike, {alike}: each counts by itself, write "
            "them alike if they are the same",
        )  # fmt: skip


def _short(value: object) -> str:
    text = " ".join(str(value).split())
    return text if len(text) <= 40 else text[:37] + "..."
