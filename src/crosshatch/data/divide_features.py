"""From settings to columns: the silos in full, and the raw part of the data each of them holds."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import polars as pl

from crosshatch.data.data_settings import CsvSettings, FederationSettings, SiloSettings
from crosshatch.data.dataset import Array, Dataset, Samples
from crosshatch.data.encoding.encode_part import RawColumns
from crosshatch.data.notes import CHOSEN, PLAIN, Note
from crosshatch.errors import PartitionError, first_few, require_whole
from crosshatch.partition.features import Claim, claim_columns, even_columns
from crosshatch.partition.windows import Window, claim_windows, grid, name_windows

_MOST_SILOS = 100_000


def silo_settings(federation: FederationSettings) -> tuple[SiloSettings, ...]:
    """The silos in full: named by the user, or left and right for halves, otherwise numbered."""
    _require_whole_numbers(federation)
    silos = federation.silos if isinstance(federation.silos, tuple) else _default_silos(federation)
    names = [silo.name for silo in silos]
    if not names:
        raise PartitionError("federation.silos is empty: at least one silo is needed")
    for name in names:
        if not name or name == "shared" or names.count(name) > 1:
            raise PartitionError(f"silo name '{name}': names must be unique, not empty and not 'shared'")
    if federation.labels not in ("shared", *names):
        raise PartitionError(
            f"federation.labels = '{federation.labels}' is not a silo: use 'shared' or one of {', '.join(names)}"
        )
    if federation.split != "patches" and federation.patches != FederationSettings.patches:
        raise PartitionError(
            f"federation.patches = {list(federation.patches)}, but split = '{federation.split}': "
            "set split = 'patches', or leave it out"
        )
    return silos


def _require_whole_numbers(federation: FederationSettings) -> None:
    """A config's types are checked where it is read; settings made in Python come here unchecked."""
    given: list[tuple[str, object]] = [("silos", federation.silos), ("clients", federation.clients)]
    for key, value in (("groups", federation.groups), ("branches", federation.branches)):
        given += [(key, number) for number in (value if isinstance(value, tuple | list) else (value,))]
    for silo in federation.silos if isinstance(federation.silos, tuple) else ():
        given.append((f"silos '{silo.name}' clients", silo.clients))
    for key, number in given:
        if number is not None and not isinstance(number, str | tuple):
            require_whole(f"federation.{key}", number)


def _default_silos(federation: FederationSettings) -> tuple[SiloSettings, ...]:
    assert not isinstance(federation.silos, tuple)
    if federation.silos is not None and federation.silos < 1:
        raise PartitionError(f"federation.silos = {federation.silos}: at least 1, or leave it out for two silos")
    if federation.split == "patches":
        rows, columns = federation.patches
        names = [f"patch{row}-{column}" for row in range(rows) for column in range(columns)]
    elif federation.split == "halves":
        names = ["left", "right"]
    else:
        if (federation.silos or 0) > _MOST_SILOS:
            raise PartitionError(f"federation.silos = {federation.silos:,}: at most {_MOST_SILOS:,}")
        names = [f"silo{i + 1}" for i in range(2 if federation.silos is None else federation.silos)]
    if federation.silos not in (None, len(names)):
        raise PartitionError(
            f"federation.silos = {federation.silos}, but split = '{federation.split}' makes {len(names)}: leave silos "
            "out"
        )
    return tuple(SiloSettings(name) for name in names)


def divide_features(
    dataset: Dataset, silos: Sequence[SiloSettings], federation: FederationSettings
) -> tuple[list[RawColumns], tuple[Note, ...]]:
    """Each silo's part in the order of `silos`, and notes on what nobody holds."""
    if dataset.kind == "image":
        return _image_parts(dataset, silos, federation)
    if federation.split != "columns":
        raise PartitionError(
            f"split = '{federation.split}' is for images and data '{dataset.name}' is a {dataset.kind}: "
            "use split = 'columns'"
        )
    if windowed := [silo.name for silo in silos if silo.window is not None]:
        raise PartitionError(f"silo '{windowed[0]}' has a window, but data '{dataset.name}' has no images: use columns")
    held = {silo.name for silo in silos if _holds_static(silo, dataset)}
    others = [silo for silo in silos if silo.name not in held]
    claims = {silo.name: _claim(silo, dataset) for silo in others}
    unclaimed: tuple[str, ...] = ()
    if others and all(claim == Claim() for claim in claims.values()):
        columns = even_columns(dataset.columns, list(claims))
    else:
        columns, unclaimed = claim_columns(dataset.columns, dataset.groups, claims, federation.labels)
    notes: tuple[Note, ...] = ()
    if unclaimed:
        some = first_few(unclaimed, 10)
        notes = (Note("no silo", CHOSEN, "", f"{len(unclaimed)} columns are in no silo: {some}"),)
    notes += tuple(
        Note("no columns", PLAIN, "", f"silo '{name}' has the labels and no columns")
        for name, held in columns.items()
        if not held
    )
    parts = []
    for silo in silos:
        place = _place(silo, dataset)
        if silo.name in held:
            static: Any = dataset.train.extra["static"]
            parts.append(_part(dataset, place, tuple(static.columns), lambda samples: samples.extra["static"]))
            continue
        positions = list(columns[silo.name])
        if not positions:
            nothing = _part(dataset, place, (), lambda samples: np.zeros((len(samples.y), 0)))
            parts.append(replace(nothing, kind="table"))
            continue
        names = tuple(dataset.columns[position] for position in positions)
        part = _part(dataset, place, names, partial(_columns, positions=positions))
        csv = silo.csv.over(dataset.csv)
        parts.append(part if csv == CsvSettings() else replace(part, csv=csv))
    return parts, notes


def _columns(samples: Samples, positions: list[int]) -> pl.DataFrame | Array:
    return samples.x[:, positions] if isinstance(samples.x, pl.DataFrame) else samples.x[..., positions]


def _part(
    dataset: Dataset, place: str, columns: tuple[str, ...], pick: Callable[[Samples], pl.DataFrame | Array]
) -> RawColumns:
    """What `pick` takes of the samples of each kind."""
    train, validation = pick(dataset.train), None if dataset.validation is None else pick(dataset.validation)
    kind = "table" if isinstance(train, pl.DataFrame) else dataset.kind
    readings = {name: dataset.readings[name] for name in columns if name in dataset.readings}
    return RawColumns(place, kind, train, pick(dataset.test), columns, validation=validation, readings=readings)


def _place(silo: SiloSettings, dataset: Dataset) -> str:
    return f"silo '{silo.name}' of {dataset.name if silo.path is None else silo.path}"


def _claim(silo: SiloSettings, dataset: Dataset) -> Claim:
    if silo.path is None:
        return Claim(silo.columns, silo.groups, silo.span)
    if not silo.columns and silo.name not in dataset.groups:
        return Claim()  # a file of ids and labels
    if not silo.columns:
        return Claim(groups=(silo.name,))  # all columns of its file: their group is the silo
    # A name that is in several files was told apart as silo.column.
    own = tuple(f"{silo.name}.{name}" if f"{silo.name}.{name}" in dataset.columns else name for name in silo.columns)
    return Claim(columns=own)


def _holds_static(silo: SiloSettings, dataset: Dataset) -> bool:
    if "static" not in silo.groups or not isinstance(dataset.train.extra.get("static"), pl.DataFrame):
        return False
    if silo.groups != ("static",) or silo.columns or silo.span is not None:
        raise PartitionError(
            f"silo '{silo.name}' holds 'static' and more: static columns are a table and the others change with time, "
            "so give 'static' a silo of its own"
        )
    return True


def _image_parts(
    dataset: Dataset, silos: Sequence[SiloSettings], federation: FederationSettings
) -> tuple[list[RawColumns], tuple[Note, ...]]:
    train = dataset.train.x
    assert isinstance(train, np.ndarray)
    height, width = train.shape[1:3]
    if odd := [silo.name for silo in silos if silo.columns or silo.groups or silo.span is not None]:
        raise PartitionError(
            f"silo '{odd[0]}' asks for columns, but data '{dataset.name}' has images: use window, split = 'halves' or "
            "'patches'"
        )
    given = {silo.name: Window(*silo.window) for silo in silos if silo.window is not None}
    if given:
        if absent := [silo.name for silo in silos if silo.window is None]:
            raise PartitionError(f"silo '{absent[0]}' has no window but others have: give every silo one, or none")
        windows, unclaimed = given, claim_windows(height, width, given)
    else:
        names = [silo.name for silo in silos]
        shape = {"columns": (1, len(names)), "halves": (1, 2), "patches": federation.patches}[federation.split]
        windows, unclaimed = name_windows(grid(height, width, *shape), names), 0
    parts = []
    for silo in silos:
        window = windows[silo.name]
        part = _part(dataset, _place(silo, dataset), _pixels(window, train.shape), partial(_cut, window=window))
        parts.append(replace(part, image=train.shape[1:], window=window))
    text = f"{unclaimed} of {height * width} pixels are in no silo"
    return parts, (Note("no silo", CHOSEN, "", text),) if unclaimed else ()


def _cut(samples: Samples, window: Window) -> Array:
    assert isinstance(samples.x, np.ndarray)
    return samples.x[:, window.top : window.bottom, window.left : window.right]


def _pixels(window: Window, shape: tuple[int, ...]) -> tuple[str, ...]:
    channels = [""] if len(shape) == 3 else [f".{k}" for k in range(shape[3])]
    return tuple(
        f"r{row}c{column}{channel}"
        for channel in channels
        for row in range(window.top, window.bottom)
        for column in range(window.left, window.right)
    )
