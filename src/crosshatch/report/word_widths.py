"""Tables whose words stay whole in a narrow console: rich alone narrows the widest columns, words or no words."""

from __future__ import annotations

from rich.console import Console
from rich.measure import Measurement
from rich.table import Column, Table


def keep_words(table: Table, console: Console) -> Table:
    """The table, whose columns are now as wide as their longest word at least; a console too narrow for it breaks some.

    >>> table = Table("local_steps", "remarks")
    >>> table.add_row("5", "diverged at the very first evaluation")
    >>> Console(width=28).print(keep_words(table, Console(width=28)))
    ┏━━━━━━━━━━━━━┳━━━━━━━━━━━━┓
    ┃ local_steps ┃ remarks    ┃
    ┡━━━━━━━━━━━━━╇━━━━━━━━━━━━┩
    │ 5           │ diverged   │
    │             │ at the     │
    │             │ very first │
    │             │ evaluation │
    └─────────────┴────────────┘
    """
    room = console.width - 3 * len(table.columns) - 1  # lines, and a space on either side of a cell
    measured = [_measure(column, console) for column in table.columns]
    widths = [one.minimum for one in measured]
    if sum(one.maximum for one in measured) > room >= sum(widths):
        for _ in range(room - sum(widths)):  # what is left goes to the narrowest that could use it
            widths[min(range(len(widths)), key=lambda i: (widths[i] >= measured[i].maximum, widths[i]))] += 1
        for column, width in zip(table.columns, widths, strict=True):
            column.width = width
    return table


def _measure(column: Column, console: Console) -> Measurement:
    """From the longest word to the longest line of all cells; where lines are not to be wrapped both are that."""
    wide = console.options.update(width=10_000)
    cells = [Measurement.get(console, wide, cell) for cell in (column.header, *column.cells)]
    longest = max(one.maximum for one in cells)
    limit = longest if column.max_width is None else min(longest, column.max_width)
    return Measurement(min(limit, longest if column.no_wrap else max(one.minimum for one in cells)), limit)
