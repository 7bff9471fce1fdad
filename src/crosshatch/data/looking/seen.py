"""What was understood of a file, column by column: what `crosshatch check` shows."""

from dataclasses import dataclass
from typing import Literal

ColumnKind = Literal[
    "number", "category", "date", "yes or no", "identifier", "free text", "constant", "empty", "id", "label"
]


@dataclass(frozen=True)
class ColumnSeen:
    """A column of a file: what it is, how many values are missing and how many different ones there are.

    `left_out`: nobody trains on it. `example` is its first value.
    """

    name: str
    kind: ColumnKind
    missing: int
    different: int
    example: str = ""
    left_out: bool = False


@dataclass(frozen=True)
class FileSeen:
    """A file of a silo (of all silos: empty): its rows, how it is written (empty for Parquet), and its columns.

    `nulls` are the words that count as missing somewhere in it; `lost` rows have ids that not all files have.
    """

    path: str
    silo: str
    purpose: str
    rows: int
    encoding: str
    separator: str
    decimal: str
    nulls: tuple[str, ...]
    columns: tuple[ColumnSeen, ...]
    lost: int = 0
