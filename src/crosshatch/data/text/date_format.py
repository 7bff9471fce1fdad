"""Dates as people write them, and as numbers: days since 1 January 1970."""

import re

import polars as pl

DAYS_OF = 86_400_000_000  # microseconds
_TIMES = ("", " %H:%M", " %H:%M:%S", " %H:%M:%S%.f", "T%H:%M", "T%H:%M:%S", "T%H:%M:%S%.f", " %I:%M %p", " %I:%M:%S %p")
_TIME = r"(?:[ T]\d{1,2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?: [AaPp][Mm])?)?(?:Z|[+-]\d{2}:?\d{2})?$"
DATE_LIKE = r"^(\d{4}[./-]\d{1,2}[./-]\d{1,2}|\d{1,2}[./-]\d{1,2}[./-]\d{4})([ T].*)?$"
"""What most people would call a date, or a time of a day."""
_SHAPES: tuple[tuple[str, tuple[str, ...]], ...] = (
    (r"^\d{4}-\d{1,2}-\d{1,2}", ("%Y-%m-%d",)),
    (r"^\d{4}/\d{1,2}/\d{1,2}", ("%Y/%m/%d",)),
    (r"^\d{4}\.\d{1,2}\.\d{1,2}", ("%Y.%m.%d",)),
    (r"^\d{1,2}\.\d{1,2}\.\d{4}", ("%d.%m.%Y",)),
    (r"^\d{1,2}/\d{1,2}/\d{4}", ("%d/%m/%Y", "%m/%d/%Y")),
    (r"^\d{1,2}-\d{1,2}-\d{4}", ("%d-%m-%Y", "%m-%d-%Y")),
    (r"^\d{1,2}\.\d{1,2}\.\d{2}", ("%d.%m.%y",)),
    (r"^\d{1,2}/\d{1,2}/\d{2}", ("%d/%m/%y", "%m/%d/%y")),
    (r"^\d{1,2}-[A-Za-z]{3}-\d{4}", ("%d-%b-%Y",)),
    (r"^\d{1,2} [A-Za-z]{3} \d{4}", ("%d %b %Y",)),
    (r"^\d{1,2} [A-Za-z]{4,9} \d{4}", ("%d %B %Y",)),
    (r"^[A-Za-z]{3} \d{1,2}, \d{4}", ("%b %d, %Y",)),
)
_SIGNS = "YymdebBhHIMSpfzZjTFDRaA%"
ORDERS = {"day first": "%d", "month first": "%m", "year first": "%Y"}


def possible_dates(cells: pl.Series, wanted: str | None) -> list[str]:
    """The formats in which all known cells (n,) are dates; `wanted` is one of `ORDERS`, a format, or None."""
    known = cells.drop_nulls()
    if not len(known) or wanted == "text":
        return []
    if wanted is not None and wanted not in ORDERS:
        if not to_days(known, wanted).null_count():
            return [wanted]
        wanted = None
    return [form for form in _candidates(known, wanted) if not to_days(known, form).null_count()]


def date_share(cells: pl.Series) -> tuple[float, str]:
    """The largest share of known cells that are dates of one format, and that format."""
    known = cells.drop_nulls()
    shares = [(1 - to_days(known, form).null_count() / len(known), form) for form in _candidates(known, None)]
    return max(shares, default=(0.0, ""))


def to_days(cells: pl.Series, form: str) -> pl.Series:
    """Days since 1 January 1970, float64 with fractions for times of day; null where a cell is no such date."""
    if form.endswith("%z"):
        cells = cells.str.replace("Z$", "+00:00")
        times = cells.str.to_datetime(form, strict=False, time_unit="us", time_zone="UTC", exact=True)
    else:
        times = cells.str.to_datetime(form, strict=False, time_unit="us", exact=True)
    return as_days(times)


def as_days(times: pl.Series) -> pl.Series:
    return (times.cast(pl.Datetime("us")).to_physical() / DAYS_OF).alias(times.name)


def _candidates(known: pl.Series, wanted: str | None) -> list[str]:
    first = str(known[0]) if len(known) else ""
    for shape, dates in _SHAPES:
        if re.match(shape + _TIME, first):
            zone = "%z" if re.search(r"\d(Z|[+-]\d{2}:?\d{2})$", first) and ":" in first else ""
            times = _TIMES if ":" in first else ("",)
            return [f"{date}{time}{zone}" for date in _in_order(dates, wanted) for time in times]
    return []


def _in_order(dates: tuple[str, ...], wanted: str | None) -> tuple[str, ...]:
    """Those of the formats in the order that is wanted; with points the month comes first only where that is said."""
    if wanted is None:
        return dates
    fitting = tuple(date for date in dates if date.startswith(ORDERS[wanted]))
    if not fitting and wanted == "month first" and dates[0].startswith("%d.%m"):
        return (dates[0].replace("%d.%m", "%m.%d"),)
    return fitting or (dates if len(dates) == 1 else ())


def is_format(text: str) -> bool:
    """Whether a text can be a format of dates: signs that stand for a part of a date, and none besides.

    >>> is_format("%d.%m.%Y"), is_format("%Q"), is_format("day")
    (True, False, False)
    """
    signs = re.findall(r"%[-_.]?\d?([A-Za-z%]?)", text)
    return bool(signs) and all(sign and sign in _SIGNS for sign in signs)
