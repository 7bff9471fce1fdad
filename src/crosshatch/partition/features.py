"""Which columns a silo holds: by name, by named group, by position, or an even slice each."""

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

import numpy as np

from crosshatch.errors import PartitionError, first_few


@dataclass(frozen=True)
class Claim:
    """What one silo asks for: column names or patterns, names of groups, and a span of positions; all are added."""

    columns: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    span: tuple[int, int] | None = None


Positions = dict[str, tuple[int, ...]]
"""Of each silo's columns, in ascending order."""


def claim_columns(
    columns: Sequence[str], groups: Sequence[str], claims: Mapping[str, Claim], label_silo: str | None = None
) -> tuple[Positions, tuple[str, ...]]:
    """Give every silo the columns it claims, and say which nobody holds. `groups` is per column, or empty.

    No column may be in two silos. The silo that holds the labels may claim none.
    """
    holder: dict[int, str] = {}
    for silo, claim in claims.items():
        positions = _positions(silo, claim, columns, groups)
        if not positions and silo != label_silo:
            raise PartitionError(
                f"silo '{silo}' has no columns: give it columns, groups or a span, or let it be the silo that holds "
                f"the labels alone (federation.labels = '{silo}')"
            )
        for position in positions:
            if position in holder:
                raise PartitionError(
                    f"column '{columns[position]}' is in two silos, '{holder[position]}' and '{silo}': "
                    "give it to one of them"
                )
        holder.update(dict.fromkeys(positions, silo))
    silos = {silo: tuple(sorted(p for p, who in holder.items() if who == silo)) for silo in claims}
    return silos, tuple(name for position, name in enumerate(columns) if position not in holder)


def even_columns(columns: Sequence[str], silos: Sequence[str]) -> Positions:
    """Contiguous slices of the columns, equal up to one column, in the order of the silos.

    >>> even_columns(["a", "b", "c"], ["left", "right"])
    {'left': (0, 1), 'right': (2,)}
    """
    if len(silos) > len(columns):
        raise PartitionError(
            f"{len(silos)} silos for {len(columns)} columns: use at most {len(columns)} silos, so that each has one"
        )
    slices = np.array_split(np.arange(len(columns)), len(silos))
    return {silo: tuple(part.tolist()) for silo, part in zip(silos, slices, strict=True)}


def unknown(what: str, name: str, known: Sequence[str], place: str) -> PartitionError:
    """The error for a name that does not exist, with the closest one that does, or the first few."""
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.6) or [
        one for one in known if one.lower() == name.lower()
    ]
    if close:
        return PartitionError(f"{place}: unknown {what} '{name}': did you mean '{close[0]}'?")
    return PartitionError(f"{place}: unknown {what} '{name}': there is {first_few(known) or 'none'}")


def _positions(silo: str, claim: Claim, columns: Sequence[str], groups: Sequence[str]) -> list[int]:
    place = f"silo '{silo}'"
    where = {name: position for position, name in enumerate(columns)}
    found: dict[int, None] = {}
    for name in claim.columns:
        if name in where:
            found[where[name]] = None
            continue
        pattern = any(mark in name for mark in "*?[")
        matches = [p for p, column in enumerate(columns) if pattern and fnmatchcase(column, name)]
        if not matches:
            raise unknown("column", name, columns, place)
        found.update(dict.fromkeys(matches))
    for group in claim.groups:
        if group not in groups:
            raise unknown("group of columns", group, sorted(set(groups)), place)
        found.update(dict.fromkeys(p for p, name in enumerate(groups) if name == group))
    if claim.span is not None:
        first, end = claim.span
        if not 0 <= first < end <= len(columns):
            raise PartitionError(
                f"{place}: span [{first}, {end}] is not within the {len(columns)} columns: "
                f"use 0 <= from < to <= {len(columns)}"
            )
        found.update(dict.fromkeys(range(first, end)))
    return list(found)
