"""Tables and lines of the commands that show something."""

from collections.abc import Iterable
from pathlib import Path

from rich.console import Console, RenderableType
from rich.table import Column, Table
from rich.text import Text

from crosshatch.report.word_widths import keep_words


def print_table(console: Console, headings: str, rows: Iterable[Iterable[RenderableType]], title: str = "") -> None:
    """A table; headings are parted by bars, and one that begins with > has its figures on the right.

    >>> print_table(Console(width=30), "silo|>clients", [("bank", "3")])
    ┏━━━━━━┳━━━━━━━━━┓
    ┃ silo ┃ clients ┃
    ┡━━━━━━╇━━━━━━━━━┩
    │ bank │       3 │
    └──────┴─────────┘
    """
    columns = [Column(one.lstrip(">"), justify="right" if one[:1] == ">" else "left") for one in headings.split("|")]
    table = Table(*columns, title=title or None)
    for row in rows:
        table.add_row(*(Text(cell) if isinstance(cell, str) else cell for cell in row))
    for column in table.columns:
        column.overflow = "fold"
    console.print(keep_words(table, console))


def print_line(console: Console, line: str, style: str = "", *, whole: bool = True) -> None:
    """A line with files of this folder by their names: left whole for the terminal to break, or broken at words."""
    console.print(Text(line.replace(f"{Path.cwd()}/", ""), style=style), soft_wrap=whole)
