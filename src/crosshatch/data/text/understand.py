"""What the columns of a text file are: numbers, dates, yes or no, or text; with a line wherever there was a choice."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import get_args

import polars as pl

from crosshatch.data.data_settings import CsvSettings
from crosshatch.data.notes import CHOSEN, DOUBTFUL, GRAVE, PLAIN, Note, listed
from crosshatch.data.text.column_reading import AMONG_NUMBERS, ColumnReading, without
from crosshatch.data.text.date_format import DATE_LIKE, ORDERS, date_share, is_format, possible_dates, to_days
from crosshatch.data.text.layout_notes import said_of_nulls
from crosshatch.data.text.number_format import (
    GROUPED_BY_POINTS,
    Decimal,
    NumberFormat,
    is_plain,
    look_like_numbers,
    number_share,
    possible_formats,
    tidy,
)
from crosshatch.errors import ConfigError, DataError

FEW = 20
"""So many different values may be codes, although most of them are numbers."""
_SAMPLE = 1000
_DIGITS = 15
_ZERO_FIRST = ["-0", "+0", *(f"0{digit}" for digit in range(10))]


@dataclass(frozen=True)
class TextColumns:
    """The columns of a file as strings without spaces around them (`cells`), and what was asked for them.

    `as_text` are read as they are written without a word: ids, and what nobody uses. `codes` may be anything.
    """

    place: str
    cells: Mapping[str, pl.Series]
    settings: CsvSettings
    separator: str
    as_text: frozenset[str]
    codes: frozenset[str]

    def refuse(self, name: str, what: str) -> DataError:
        return DataError(f"{self.place}: column '{name}' {what}")


def understand(columns: TextColumns) -> tuple[dict[str, ColumnReading], list[Note]]:
    """A reading for every column, and what is to be said of them."""
    nulls = columns.settings.nulls
    readings: dict[str, ColumnReading] = {}
    numeric: dict[str, list[NumberFormat]] = {}
    dates: dict[str, list[str]] = {}
    for name, cells in columns.cells.items():
        readings[name] = ColumnReading("text", nulls=nulls)
        if name in columns.as_text:
            continue
        known = without(cells, AMONG_NUMBERS + (nulls or ())).drop_nulls()
        if not len(known):
            continue
        if known.head(_SAMPLE).str.to_lowercase().is_in(["true", "false"]).all() and (
            known.str.to_lowercase().is_in(["true", "false"]).all()
        ):
            readings[name] = ColumnReading("yes or no", nulls=nulls)
        elif possible_dates(known.head(_SAMPLE), columns.settings.dates) and (
            found := possible_dates(known, columns.settings.dates)
        ):
            dates[name] = found
        elif (found_numbers := _numbers(name, known, columns)) is not None:
            numeric[name] = found_numbers
        else:
            _refuse_mixed(name, known, columns)
    notes = list(_settle_numbers(columns, numeric, readings))
    notes += _settle_dates(columns, dates, readings)
    notes += said_of_nulls(columns.place, columns.cells, readings, columns.as_text)
    return readings, notes


def _numbers(name: str, known: pl.Series, columns: TextColumns) -> list[NumberFormat] | None:
    """The formats in which a column is numbers; an empty list for plain ones, None where it is not numbers."""
    settings = columns.settings
    decimals: tuple[Decimal, ...] = get_args(Decimal) if settings.decimal is None else (settings.decimal,)
    if settings.thousands in (".", ",") and settings.decimal is None:
        decimals = ("," if settings.thousands == "." else ".",)
    if is_plain(known.head(_SAMPLE)) and is_plain(known):
        if (_is_padded(known) or _is_long(known)) and name not in settings.numbers:
            return None
        if "." in decimals or not known.str.contains(".", literal=True).any():
            return []
    elif number_share(known.head(_SAMPLE)) < 1:
        return None
    formats = possible_formats(known, decimals, settings.thousands)
    if not formats and name not in columns.codes and number_share(known) == 1 and not _is_padded(known):
        raise columns.refuse(name, _not_one_way(known, columns))
    return formats or None


def _not_one_way(known: pl.Series, columns: TextColumns) -> str:
    some = _shapes(known)
    asked = "" if columns.settings.decimal is None else f" (data.csv.decimal = '{columns.settings.decimal}')"
    return (
        f"has numbers that are not written in one way{asked}, for example {', '.join(map(repr, some))}: write them "
        "alike, set data.csv.decimal and data.csv.thousands, or name the column in data.categorical (if these are "
        "codes) or data.leave_out"
    )


def _shapes(known: pl.Series) -> list[str]:
    """Three cells that are written in different ways, if there are any."""
    shapes = tidy(known).str.replace_all(r"\d+", "0")
    return [str(known[int((shapes == shape).arg_true()[0])]) for shape in shapes.unique(maintain_order=True)[:3]]


def _is_padded(known: pl.Series) -> bool:
    first = known.str.slice(0, 2)
    return bool(known.filter(first.is_in(_ZERO_FIRST)).str.contains(r"^[+-]?0\d").any())


def _is_long(known: pl.Series) -> bool:
    """Whether whole numbers have more digits than can be computed with: then they are codes."""
    return bool((known.str.len_chars() > _DIGITS).any() and known.str.contains(r"^[+-]?\d{16,}$").any())


def _refuse_mixed(name: str, known: pl.Series, columns: TextColumns) -> None:
    """Refuse many numbers (or dates) with some words among them: each of them would become a category."""
    if name in columns.codes or columns.settings.dates == "text":
        return
    dates = bool(known.str.contains(DATE_LIKE).all())
    if not dates and known.n_unique() <= FEW:
        return
    is_meant, what = look_like_numbers(known), "numbers"
    if dates or float(is_meant.mean()) <= 0.5:  # type: ignore[arg-type]
        share, form = date_share(known if dates else known.filter(known.str.contains(r"^\d")))
        if share < 0.5 and not dates:
            return
        is_meant, what = to_days(known, form).is_not_null(), "dates"
    others = known.filter(~is_meant)
    if dates and not 0 < len(others) < len(known) / 2:
        raise columns.refuse(
            name,
            f"has dates that are not written in one way, or are none: {', '.join(map(repr, _shapes(known)))}; write "
            'them alike, set data.csv.dates to their format (or to "text"), or name the column in data.leave_out',
        )
    if not 0 < len(others) < len(known) / 2:
        return
    counted = "1 value" if len(others) == 1 else f"{len(others)} values"
    row = int((columns.cells[name] == others[0]).arg_true()[0]) + 1
    raise columns.refuse(
        name,
        f"has {counted} like '{others[0]}' (row {row}) among {what}: correct them, add them to data.csv.nulls if they "
        "mean a missing value, or name the column in data.categorical (if these are codes) or data.leave_out",
    )


def _settle_numbers(
    columns: TextColumns, numeric: Mapping[str, list[NumberFormat]], readings: dict[str, ColumnReading]
) -> Iterator[Note]:
    """One file is written in one way: where a column leaves it open, the others decide, or nobody does."""
    nulls = columns.settings.nulls
    odd = columns.separator == ";" or any(numeric.values())
    missing = AMONG_NUMBERS + (nulls or ())  # some of these words have points themselves
    dotted = {
        name: _dots(without(columns.cells[name], missing)) for name, formats in numeric.items() if odd and not formats
    }
    commas = any(len(formats) == 1 and formats[0].decimal == "," for formats in numeric.values())
    points = "free" in dotted.values() or any(
        len(formats) == 1 and formats[0].decimal == "." for formats in numeric.values()
    )
    said: dict[tuple[str, str], list[str]] = {}
    for name, formats in numeric.items():
        chosen: NumberFormat | None = formats[0] if formats else None
        why = ""
        parsed = [form.parse(columns.cells[name].drop_nulls()).cast(pl.Float64) for form in formats]
        if len(parsed) > 1 and bool((parsed[0] != parsed[1]).any()):
            if commas == points:
                raise columns.refuse(name, _ambiguous(columns.cells[name], formats))
            chosen = next(form for form in formats if form.decimal == ("," if commas else "."))
            why = f", as other columns have decimal {'commas' if commas else 'points'}"
        elif dotted.get(name) == "groups" and columns.settings.decimal is None and columns.settings.thousands is None:
            if commas and not points:
                chosen, why = NumberFormat(",", "."), ", as other columns have decimal commas"
            elif columns.separator == ";" and not points:
                raise columns.refuse(name, _ambiguous(columns.cells[name], [NumberFormat(), NumberFormat(",", ".")]))
        readings[name] = ColumnReading("number", chosen, nulls=nulls)
        if chosen is not None or why:
            said.setdefault(((chosen or NumberFormat()).describe(), why), []).append(name)
    for (form, why), names in said.items():
        reading = readings[names[0]]
        known = reading.known(columns.cells[names[0]]).drop_nulls()
        example = known.filter(known.str.contains(r"[^\d]"))[0] if known.str.contains(r"[^\d]").any() else known[0]
        value = reading.apply(pl.Series(names[0], [example]), columns.place)[0]
        yield Note(
            "number format", GRAVE if why else CHOSEN if columns.settings.decimal is None else PLAIN, columns.place,
            f"{listed(names)}: numbers with {form}{why}: '{example}' is read as {value:.12g} (data.csv.decimal, "
            "data.csv.thousands)",
        )  # fmt: skip


def _dots(cells: pl.Series) -> str:
    """Whether plain numbers have points ("free"), and perhaps between groups of three digits only ("groups")."""
    for some in (cells.head(_SAMPLE).drop_nulls(), cells.drop_nulls()):
        dotted = some.filter(some.str.contains(".", literal=True))
        if len(dotted) and not dotted.str.contains(GROUPED_BY_POINTS).all():
            return "free"
    if not len(dotted):
        return ""
    return "groups"


def _ambiguous(cells: pl.Series, formats: list[NumberFormat]) -> str:
    one, other = (form.parse(cells) for form in formats)
    row = int((one.cast(pl.Float64) != other.cast(pl.Float64)).fill_null(False).arg_true()[0])
    values = {form.decimal: f"{parsed[row]:.12g}" for form, parsed in zip(formats, (one, other), strict=True)}
    return (
        f"has '{cells[row]}' in row {row + 1}, which may be {values['.']} or {values[',']}, and nothing in the file "
        f'tells: set data.csv.decimal = "." for {values["."]}, or data.csv.decimal = "," for {values[","]} '
        "(csv.decimal of the silo, where files differ), or name the column in data.categorical (if these are codes) or "
        "data.leave_out"
    )


def _settle_dates(
    columns: TextColumns, dates: Mapping[str, list[str]], readings: dict[str, ColumnReading]
) -> Iterator[Note]:
    """Where day and month may be either, the other columns decide, or nobody does."""
    certain = {formats[0][:2] for formats in dates.values() if len({form[:2] for form in formats}) == 1}
    orders = certain & {"%d", "%m"}
    for name, formats in dates.items():
        form, why = formats[0], ""
        if len({one[:2] for one in formats}) > 1:
            if len(orders) != 1:
                raise columns.refuse(
                    name,
                    f"has dates like '{columns.cells[name].drop_nulls()[0]}', in which either number may be the month: "
                    'set data.csv.dates = "day first" or "month first"',
                )
            form = next(one for one in formats if one[:2] in orders)
            why = ", as in other columns"
        readings[name] = ColumnReading("date", date=form, nulls=columns.settings.nulls)
        doubtful = why or "%y" in form
        century = "; years from 69 on are of the 20th century" if "%y" in form else ""
        yield Note(
            "date format", DOUBTFUL if doubtful else CHOSEN, columns.place,
            f"'{name}' has dates, written {form}{why}{century}: they become days since 1970 (data.csv.dates)",
        )  # fmt: skip


def require_csv(settings: CsvSettings, place: str) -> None:
    if settings.decimal is not None and settings.decimal == settings.thousands:
        raise ConfigError(f"{place}: decimal and thousands are both '{settings.decimal}': they must differ")
    dates = settings.dates
    if dates is not None and dates not in (*ORDERS, "text") and not is_format(dates):
        raise ConfigError(
            f'{place}.dates = "{dates}": it is "day first", "month first", "text", or a format such as "%d.%m.%Y"'
        )
