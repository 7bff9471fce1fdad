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
    small = {name: text.str.to_lowercase() for name, text in texts.items()}
    tried = {"": texts, **{way: _changed(texts, way) for way in _WAYS}, "in small letters": small}
    tried["without zeros, spaces and capitals"] = reduce(_changed, _WAYS, small)
    counts = {way: len(set.intersection(*(set(text.to_list()) for text in one.values()))) for way, one in tried.items()}
    best = max(counts, key=lambda way: counts[way])
    return counts[best], best


def _changed(texts: Mapping[str, pl.Series], way: str) -> dict[str, pl.Series]:
    return {name: text.str.replace_all(*_WAYS[way]) for name, text in texts.items()}
