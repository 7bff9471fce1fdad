"""Numbers as people write them: decimal and thousands marks, signs of money and units, brackets for minus."""

import re
from collections.abc import Iterator
from typing import Literal

import msgspec
import polars as pl

Decimal = Literal[".", ","]
MARKS: dict[Decimal, tuple[str, ...]] = {".": (",", " ", "'"), ",": (".", " ", "'")}
"""The thousands marks that go with a decimal mark."""
_MONEY = "€|\\$|£|¥|EUR|USD|GBP|CHF|JPY|SEK|NOK|DKK|PLN|kr|Fr\\."
_UNITS = (
    "%|‰|mg|kg|km²|km|cm|mm|ml|m²|m2|m|g|t|l|h|s|d|y|°C|°F|years?|yrs?|months?|weeks?|days?|hours?|hrs?|minutes?|mins?|"
    "Jahre?|Monate?|Tage?|Stück"
)
_BEFORE = rf"^([+-]?)\s*(?:{_MONEY})\s*"
_AFTER = rf"\s*(?:{_MONEY}|{_UNITS})$"
_ANY = r"^[+-]?(\d+([.,]\d*)?|[.,]\d+|\d{1,3}([., ']\d{3})+([.,]\d*)?|\d{1,3}(,\d{2,3})+(\.\d*)?)([eE][+-]?\d+)?$"
GROUPED_BY_POINTS = r"^[+-]?[1-9]\d{0,2}(\.\d{3})+$"


class NumberFormat(msgspec.Struct, frozen=True):
    """The marks of a column's numbers; `unit` is a sign that all of them carry, `brackets` that some mean minus."""

    decimal: Decimal = "."
    thousands: str = ""
    unit: str = ""
    brackets: bool = False

    @property
    def pattern(self) -> str:
        """What a number looks like, without its unit."""
        point = re.escape(self.decimal)
        groups = rf"[1-9]\d{{0,2}}(?:{re.escape(self.thousands)}\d{{3}})+|" if self.thousands else ""
        return rf"^[+-]?(?:(?:{groups}\d+)(?:{point}\d*)?|{point}\d+)(?:[eE][+-]?\d+)?$"

    def fits(self, cells: pl.Series) -> pl.Series:
        """Which of these cells (n,) are such numbers; null for null."""
        return self._bare(cells).str.contains(self.pattern)

    def parse(self, cells: pl.Series) -> pl.Series:
        """Numbers (n,), whole ones where all are; null where a cell is not such a number."""
        bare = self._bare(cells)
        bare = pl.select(pl.when(bare.str.contains(self.pattern)).then(bare)).to_series()
        if self.thousands:
            bare = bare.str.replace_all(self.thousands, "", literal=True)
        if self.decimal == ",":
            bare = bare.str.replace_all(",", ".", literal=True)
        return to_numbers(bare).alias(cells.name)

    def describe(self) -> str:
        """The marks in words.

        >>> NumberFormat(",", ".").describe(), NumberFormat(unit="%").describe()
        ('decimal comma, thousands points', 'decimal points, without %')
        """
        names = {",": "commas", ".": "points", " ": "spaces", "'": "apostrophes"}
        parts = ["decimal comma" if self.decimal == "," else "decimal points"]
        parts += [f"thousands {names[self.thousands]}"] if self.thousands else []
        parts += [f"without {self.unit}"] if self.unit else []
        return ", ".join([*parts, *(["brackets or a minus behind as minus"] if self.brackets else [])])

    def _bare(self, cells: pl.Series) -> pl.Series:
        bare = tidy(cells)
        if self.unit:
            sign = re.escape(self.unit)
            bare = bare.str.replace(rf"^([+-]?)\s*{sign}\s*", "$1").str.replace(rf"\s*{sign}$", "")
        if self.brackets:
            bare = bare.str.replace(r"^\((.*)\)$", "-$1").str.replace(r"^([^-+].*)-$", "-$1")
        return bare


def tidy(cells: pl.Series) -> pl.Series:
    """Spaces, minus signs and apostrophes of other alphabets as those of a keyboard."""
    odd = cells.str.contains(r"[\u{a0}\u{2009}\u{202f}\u{2212}\u{2013}\u{2019}]")
    if not odd.any():
        return cells
    cells = cells.str.replace_all(r"[\u{a0}\u{2009}\u{202f}]", " ")
    return cells.str.replace_all(r"^[\u{2212}\u{2013}]", "-").str.replace_all("\u2019", "'", literal=True)


def to_numbers(bare: pl.Series) -> pl.Series:
    """Plain numbers as whole ones where all of them are, else as float64; null where there is none."""
    for some in (bare.head(1000), bare):
        whole = some.cast(pl.Int64, strict=False)
        if whole.null_count() > some.null_count():
            break
    else:
        return whole
    return bare.cast(pl.Float64, strict=False)


def is_plain(cells: pl.Series) -> bool:
    """Whether all known cells are numbers as programs write them; infinity is one, and refused later."""
    return cells.cast(pl.Float64, strict=False).null_count() == cells.null_count()


def possible_formats(cells: pl.Series, decimals: tuple[Decimal, ...], thousands: str | None) -> list[NumberFormat]:
    """The ways in which all known cells (n,) are numbers, one for each decimal mark at most.

    `thousands` is the only mark there may be, or None where it is to be found out.
    """
    known = tidy(cells.drop_nulls())
    found = []
    for unit, brackets in _dresses(known):
        for decimal in decimals:
            marks = MARKS[decimal] if thousands is None else (thousands,) if thousands != decimal else ()
            for mark in marks:
                form = NumberFormat(decimal, mark, unit, brackets)
                if form.fits(known).all():
                    found.append(form)
                    break
        if found:
            break
    return found


def number_share(cells: pl.Series) -> float:
    known = cells.drop_nulls()
    return float(look_like_numbers(known).mean()) if len(known) else 0.0  # type: ignore[arg-type]


def look_like_numbers(known: pl.Series) -> pl.Series:
    """Which of these cells (n,) are numbers, whatever their marks and units."""
    bare = tidy(known).str.replace(r"^\((.*)\)$", "$1").str.replace(r"-$", "")
    bare = bare.str.replace(_BEFORE, "$1").str.replace(_AFTER, "")
    return bare.str.contains(_ANY)


def _dresses(known: pl.Series) -> Iterator[tuple[str, bool]]:
    """What cells may wear beside the number: nothing, one unit throughout, brackets."""
    brackets = bool((known.str.contains(r"^\(.*\)$") | known.str.contains(r"^[^-+].*-$")).any())
    yield "", brackets
    bare = known.str.replace(r"^\((.*)\)$", "$1").str.replace(r"-$", "") if brackets else known
    for pattern in (rf"^[+-]?\s*({_MONEY})", rf"\d\s*({_MONEY}|{_UNITS})$"):
        units = bare.str.extract(pattern)
        if len(units) and not units.null_count() and units.n_unique() == 1:
            yield str(units[0]), brackets
