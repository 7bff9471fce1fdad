"""Ids that would be found in all files if they were written alike."""

from collections.abc import Mapping
from functools import reduce

import polars as pl

from crosshatch.data.dataset import Array

FEW_IDS = 200_000
_WAYS = {
    "without leading zeros (name the id column in data.csv.numbers)": (r"^0+(\d)", "${1}"),
    "without '.0' behind": (r"\.0+$", ""),
    "without spaces, hyphens and commas": (r"[\s\-_/.,]+", ""),
}


def found_if_alike(ids: Mapping[str, Array]) -> tuple[int, str]:
    """The most ids that all have if they are written alike, and how that would be."""
    texts = {name: pl.Series([str(one) for one in values.tolist()]) for name, values in ids.items()}
    best = (_common(texts), "")
    for way, (pattern, instead) in _WAYS.items():
        changed = {name: text.str.replace_all(pattern, instead) for name, text in texts.items()}
        best = max(best, (_common(changed), way), key=lambda pair: pair[0])
    lower = {name: text.str.to_lowercase() for name, text in texts.items()}
    best = max(best, (_common(lower), "in small letters"), key=lambda pair: pair[0])
    for pattern, instead in _WAYS.values():
        lower = {name: text.str.replace_all(pattern, instead) for name, text in lower.items()}
    return max(best, (_common(lower), "without zeros, spaces and capitals"), key=lambda pair: pair[0])


def _common(texts: Mapping[str, pl.Series]) -> int:
    return len(reduce(lambda one, other: one & other, (set(text.to_list()) for text in texts.values())))
