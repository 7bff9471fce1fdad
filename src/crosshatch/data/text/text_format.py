"""How a text file is laid out: its encoding, its separator, and where its header is; set, or guessed."""

import codecs
import csv
import re
from collections import Counter
from dataclasses import dataclass
from io import TextIOWrapper
from itertools import islice
from pathlib import Path

from crosshatch.data.data_settings import CsvSettings
from crosshatch.errors import ConfigError, DataError

SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
_WORDS = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "bar": "|", "pipe": "|"}
_BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF32_LE, "utf-32"), (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)  # fmt: skip
_LOOKED_AT = 200  # lines, to tell the separator
_PIECE = 1 << 22
_EXCEL_HINT = re.compile(r"^\ufeff?\"?sep=(.)\"?\s*$", re.IGNORECASE)


@dataclass(frozen=True)
class TextFormat:
    """The layout of one file; `above` are the lines over its header, and `undecodable` is where it is not UTF-8."""

    encoding: str
    separator: str
    quote: str
    comment: str | None
    header: bool | None
    above: tuple[str, ...] = ()
    undecodable: str = ""

    def open(self, path: Path) -> TextIOWrapper:
        return TextIOWrapper(path.open("rb"), encoding=self.encoding)


def find_format(path: Path, settings: CsvSettings) -> TextFormat:
    """The layout of a file, as far as the settings do not say it."""
    if len(settings.quote) > 1:
        raise ConfigError(f"data.csv.quote = '{settings.quote}': it is one character, or \"\" for none")
    separator = _separator(settings)
    encoding, undecodable = _encoding(path, settings.encoding)
    with TextIOWrapper(path.open("rb"), encoding=encoding) as file:
        try:
            lines = list(islice(file, _LOOKED_AT))
        except UnicodeError as error:
            raise cannot_decode(path, encoding, error) from None
    hint = _EXCEL_HINT.match(lines[0]) if lines else None
    if separator is None:
        separator = hint[1] if hint else _guess_separator(lines, path, settings)
    above = _above(lines, separator, settings, hinted=hint is not None)
    return TextFormat(encoding, separator, settings.quote, settings.comment, settings.header, above, undecodable)


def fields_of(line: str, separator: str, quote: str) -> list[str]:
    """The values in a line, or in lines that one value spans."""
    given = {"quotechar": quote} if quote else {"quoting": csv.QUOTE_NONE}
    return next(csv.reader([line.rstrip("\r\n")], delimiter=separator, skipinitialspace=separator != " ", **given), [])


def cannot_decode(path: Path, encoding: str, error: UnicodeError) -> DataError:
    """The refusal of a byte that is none in this encoding: where it is, and what to do."""
    where = ""
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            try:
                line.decode(encoding if not encoding.startswith(("utf-16", "utf-32")) else "latin-1")
            except UnicodeDecodeError as found:
                where = f", line {number}, byte {found.start + 1}: 0x{line[found.start]:02x}"
                break
    reason = f"{where} is" if where else f": {getattr(error, 'reason', error)}, it is"
    return DataError(
        f"{path}{reason} not {encoding}: save the file as UTF-8 (in Excel: CSV UTF-8), or set data.csv.encoding to "
        'what it is, for example "cp1252"'
    )


def _separator(settings: CsvSettings) -> str | None:
    given = settings.separator
    if given is None:
        return None
    given = _WORDS.get(given.lower(), given)
    if len(given) != 1 or given in ('"', "\n", "\r"):
        raise ConfigError(f"data.csv.separator = '{settings.separator}': it is one character such as ; or | , or 'tab'")
    return given


def _encoding(path: Path, given: str | None) -> tuple[str, str]:
    """The encoding, and where the first byte is that is not UTF-8."""
    with path.open("rb") as file:
        start = file.read(_PIECE)
    marked = next((name for mark, name in _BOMS if start.startswith(mark)), None)
    if given is not None:
        try:
            name = codecs.lookup(given).name
        except LookupError:
            raise ConfigError(
                f'data.csv.encoding = "{given}" is not an encoding: use for example "utf-8", "cp1252" or "utf-16"'
            ) from None
        return ("utf-8-sig" if name == "utf-8" else name), ""
    if marked is not None:
        return marked, ""
    if start[:1000].count(0):
        odd, even = (part.count(0) / max(1, len(part)) for part in (start[1:1000:2], start[0:1000:2]))
        if max(odd, even) < 0.5 or min(odd, even) > 0.05:
            raise DataError(f"{path} is not a text file: save it as CSV (in Excel: CSV UTF-8), or as Parquet")
        return ("utf-16-le" if odd > even else "utf-16-be"), ""
    decoder, done, lines = codecs.getincrementaldecoder("utf-8")(), 0, 0
    with path.open("rb") as file:
        piece = file.read(_PIECE)
        while True:
            following = file.read(_PIECE)
            try:
                decoder.decode(piece, final=not following)
            except UnicodeDecodeError as error:
                place = max(0, error.start - (len(error.object) - len(piece)))
                line = lines + piece.count(b"\n", 0, place) + 1
                return _western(path), f"line {line}, byte 0x{error.object[error.start]:02x}"
            if not following:
                return "utf-8", ""
            done, lines, piece = done + len(piece), lines + piece.count(b"\n"), following


def _western(path: Path) -> str:
    """Windows' encoding of Western Europe, if all bytes have a meaning there."""
    unused = re.compile(rb"[\x81\x8d\x8f\x90\x9d]")
    with path.open("rb") as file:
        while piece := file.read(_PIECE):
            if unused.search(piece):
                raise cannot_decode(path, "utf-8", UnicodeError("neither UTF-8 nor cp1252"))
    return "cp1252"


def _guess_separator(lines: list[str], path: Path, settings: CsvSettings) -> str:
    """The one that divides most lines into the same number of values, and that into several."""
    preferred = "\t" if path.suffix.lower() == ".tsv" else ","
    best, best_score = preferred, (0.0, 0.0, 0)
    known = [line for line in lines if line.strip() and not (settings.comment and line.startswith(settings.comment))]
    for separator in sorted(SEPARATORS, key=lambda sign: sign != preferred):
        counts = _counts(known, separator, settings.quote)
        common, times = (
            Counter(count for count in counts if count > 1).most_common(1)[0] if max(counts, default=1) > 1 else (1, 0)
        )
        if common == 1:
            continue
        first = next(count for count in counts if count > 1)
        score = (round(times / len(counts), 2), float(first == common), common)
        if score > best_score:
            best, best_score = separator, score
    counts = _counts(known, " ", settings.quote)
    if best_score == (0.0, 0.0, 0) and len(known) > 2 and min(counts) > 1 and len(set(counts)) == 1:
        return " "
    return best


def _counts(lines: list[str], separator: str, quote: str) -> list[int]:
    given = {"quotechar": quote} if quote else {"quoting": csv.QUOTE_NONE}
    try:
        rows = csv.reader(lines, delimiter=separator, skipinitialspace=separator != " ", **given)
        return [len(row) for row in rows if row]
    except csv.Error:
        return [line.count(separator) + 1 for line in lines]


def _above(lines: list[str], separator: str, settings: CsvSettings, *, hinted: bool) -> tuple[str, ...]:
    """Titles, empty lines and comments over the header; the first line with several values is the header."""
    if settings.skip is not None:
        if settings.skip < 0:
            raise ConfigError(
                f"data.csv.skip = {settings.skip}: it is the number of lines above the header, at least 0"
            )
        return tuple(lines[: settings.skip])
    width = Counter(_counts(lines, separator, settings.quote)).most_common(1)
    count = int(hinted)
    for line in lines[count:]:
        values = fields_of(line, separator, settings.quote)
        usual = width[0][0] if width else 1
        title = sum(bool(value.strip()) for value in values) == 1 and usual > min(len(values), 2)
        comment = line.startswith(settings.comment or "#") and (settings.comment or len(values) != usual)
        if line.strip() and not title and not comment:
            break
        count += 1
    return tuple(lines[:count]) if count < len(lines) else tuple(lines[: int(hinted)])
