"""What people write where they have no value."""

from __future__ import annotations

EXCEL_ERRORS = (
    "#N/A",
    "#NV",
    "#DIV/0!",
    "#VALUE!",
    "#WERT!",
    "#REF!",
    "#BEZUG!",
    "#NAME?",
    "#NUM!",
    "#ZAHL!",
    "#NULL!",
)
EVERYWHERE = ("NA", "N/A", "n/a", "nan", "NaN", "NAN", "null", "NULL", "?", *EXCEL_ERRORS)
"""Missing in any column, with a line that says so, unless data.csv.nulls names other words; empty cells always are."""
AMONG_NUMBERS = (
    *EVERYWHERE, "-", "--", "---", ".", "..", "None", "none", "NONE", "na", "Null", "<NA>", "n.a.", "N.A.", "n.v.",
    "k.A.", "k. A.", "missing", "Missing", "unknown", "Unknown", "NaT", "(null)",
)  # fmt: skip
"""Missing where all other cells of a column are numbers or dates, again with a line."""
PERHAPS = tuple(word for word in AMONG_NUMBERS if word not in EVERYWHERE)
"""Categories of their own in columns of text, with a line."""
