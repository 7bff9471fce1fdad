"""The rows of a text file, in pieces: what is blank or a comment is left out and counted, and no row is longer or
shorter than the header."""

import csv
from collections.abc import Iterator
from dataclasses import dataclass, field
from io import BytesIO, StringIO
from itertools import islice
from pathlib import Path

import polars as pl

from crosshatch.data.text.text_format import TextFormat, cannot_decode, fields_of
from crosshatch.errors import DataError, one_line

PIECE = 20_000
_LONGEST = 10_000  # lines that one value may span: more is a quotation mark that nobody closed


@dataclass
class LeftOutLines:
    """What was left out of a file so far: the numbers of its lines."""

    blank: list[int] = field(default_factory=list)
    comments: list[int] = field(default_factory=list)
    last_line: int = 0


def read_header(path: Path, layout: TextFormat) -> list[str]:
    """The names of the columns, without spaces around them; numbered where there is no header."""
    pieces = (
        (number, text) for start, lines in _pieces(path, layout, 100) for number, text in _records(start, lines, layout)
    )
    first = next((text for number, text in pieces if number > len(layout.above) and text.strip()), None)
    if first is None:
        raise DataError(f"{path} has no rows: it needs a header line and at least one row")
    names = [name.strip() for name in fields_of(first, layout.separator, layout.quote)]
    return [f"column {i + 1}" for i in range(len(names))] if layout.header is False else names


def text_pieces(
    path: Path, layout: TextFormat, names: list[str], counted: LeftOutLines, rows: int = PIECE
) -> Iterator[pl.DataFrame]:
    """Frames of at most so many rows, all cells as they are written; those after the header."""
    header_to_come = layout.header is not False
    for start, lines in _pieces(path, layout, rows):
        counted.last_line = start + len(lines) - 1
        if not header_to_come and start > len(layout.above) and _is_simple(lines, layout, len(names)):
            yield _parse("".join(lines), layout, names, path)
            continue
        kept = []
        for number, text in _records(start, lines, layout):
            if number <= len(layout.above):
                continue
            if not text.strip(f'{layout.separator} \t\r\n"').strip():
                if not header_to_come:
                    counted.blank.append(number)
            elif header_to_come:
                header_to_come = False
            elif _is_comment(text, layout, len(names)):
                counted.comments.append(number)
            else:
                _require_width(text, number, path, layout, names)
                kept.append(text)
        if kept:
            yield _parse("".join(kept), layout, names, path)


def _is_simple(lines: list[str], layout: TextFormat, width: int) -> bool:
    """Whether every line is a row without quotes: nothing is blank, a comment, too long or too short."""
    if layout.comment or width < 2 or min(map(len, lines)) < 3 * width:
        return False
    signs = {line.count(layout.separator) for line in lines}
    return signs == {width - 1} and not (layout.quote and any(layout.quote in line for line in lines))


def _pieces(path: Path, layout: TextFormat, rows: int) -> Iterator[tuple[int, list[str]]]:
    """Lines that are whole records, about so many at a time, and the number of the first."""
    number = 1
    quote = layout.quote
    with layout.open(path) as file:
        try:
            while lines := list(islice(file, rows)):
                opened = quote and sum(line.count(quote) for line in lines) % 2
                for line in islice(file, _LONGEST) if opened else ():
                    lines.append(line)
                    if line.count(quote) % 2:
                        opened = False
                        break
                if opened:
                    raise _unclosed(path, number, lines, layout)
                if not lines[-1].endswith("\n"):
                    lines[-1] += "\n"
                yield number, lines
                number += len(lines)
        except UnicodeError as error:
            raise cannot_decode(path, layout.encoding, error) from None


def _records(start: int, lines: list[str], layout: TextFormat) -> Iterator[tuple[int, str]]:
    """Each record and the number of its first line; a quoted value may go over several lines."""
    quote, pending, first = layout.quote, "", start
    for number, line in enumerate(lines, start=start):
        odd = bool(quote) and line.count(quote) % 2 == 1
        if not pending and not odd:
            yield number, line
            continue
        first = first if pending else number
        pending += line
        if odd and len(pending) > len(line):
            yield first, pending
            pending = ""


def _unclosed(path: Path, start: int, lines: list[str], layout: TextFormat) -> DataError:
    odd = [number for number, line in enumerate(lines, start=start) if line.count(layout.quote) % 2]
    return DataError(
        f"{path}, line {odd[-1]}: a quotation mark ({layout.quote}) is opened and never closed: close it, write it "
        'twice if it belongs to the value, or set data.csv.quote = "" if such marks are parts of values'
    )


def _is_comment(text: str, layout: TextFormat, width: int) -> bool:
    if layout.comment:
        return text.startswith(layout.comment)
    return width > 1 and text.startswith("#") and layout.separator not in text


def _require_width(text: str, number: int, path: Path, layout: TextFormat, names: list[str]) -> None:
    if layout.quote and layout.quote in text:
        count = len(fields_of(text, layout.separator, layout.quote))
    else:
        count = text.count(layout.separator) + 1
    if count != len(names):
        what = "1 value" if count == 1 else f"{count} values"
        raise DataError(
            f"{path}, line {number}: {what}, and the header names {len(names)} columns: correct the line or take it "
            "out (a value with the separator in it needs quotes)"
        )


def _parse(text: str, layout: TextFormat, names: list[str], path: Path) -> pl.DataFrame:
    places = {f"{i}": pl.String for i in range(len(names))}  # names may repeat or be empty
    quote, separator = layout.quote, layout.separator
    if quote and (f"{quote} {separator}" in text or f"{separator} {quote}" in text):  # spaces around quoted values
        rows = csv.reader(StringIO(text), delimiter=separator, quotechar=quote, skipinitialspace=True)
        return pl.DataFrame(list(rows), schema=places, orient="row")
    try:
        return pl.read_csv(
            BytesIO(text.encode()), has_header=False, separator=separator, quote_char=quote or None, schema=places
        )
    except pl.exceptions.PolarsError as error:
        raise DataError(f"{path} is unreadable: {one_line(error)[:200]}; correct the file or save it again") from None
