"""The papers' numbers, from papers.toml."""

import tomllib
from functools import cache
from pathlib import Path

TABLES = Path(__file__).with_name("papers.toml")


@cache
def _numbers() -> dict[tuple[str, str, str], float]:
    tables = tomllib.loads(TABLES.read_text(encoding="utf-8"))["number"]
    return {
        (table["recipe"], row, table["column"]): float(value)
        for table in tables
        for row, value in table["rows"].items()
    }


def number(recipe: str, row: str, column: str) -> float | None:
    """What a paper says; None where it gives no number.

    >>> number("fedbcd-table1-cnn", "FedSGD", "rounds"), number("fedbcd-fig2", "FedSGD", "rounds")
    (46.0, None)
    """
    return _numbers().get((recipe, row, column))
