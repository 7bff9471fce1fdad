"""Small federations of every kind, trained for a few rounds, with rows that nobody trained on."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import polars as pl
from torch import Tensor

from crosshatch.runs.checkpoint import read_checkpoint
from crosshatch.runs.config import read_config
from crosshatch.runs.prepare import prepare
from crosshatch.runs.train import train
from crosshatch.simulator.simulator import Simulator

Tables = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """A config's tables, without its run; `new` are the files with new rows, by silo where each has its own."""

    tables: Tables
    new: str | dict[str, str]


def people(rows: int, *, target: str, first: int, gaps: bool = True) -> pl.DataFrame:
    """Numbers with gaps and outliers, categories with gaps, codes, and a label that depends on them."""
    random = np.random.default_rng(first)
    age, income = random.normal(40, 12, rows), random.lognormal(3, 1, rows)
    colour = random.choice(np.array(["red", "green", "007"]), rows)
    code = random.integers(1, 4, rows)
    value = (age - 40) / 12 + np.log(income) - 3 + (colour == "red") + 0.5 * code + random.normal(0, 0.3, rows)
    ranks = np.argsort(np.argsort(value))
    y: Any = {"binary": np.where(ranks * 2 < rows, "no", "yes"), "multiclass": ranks * 3 // rows, "regression": value}
    frame = pl.DataFrame(
        {
            "id": np.arange(first, first + rows),
            "age": age,
            "income": income,
            "colour": colour,
            "code": code,
            "y": y[target],
        }
    )
    if not gaps:
        return frame
    missing = random.random((rows, 2)) < 0.15
    return frame.with_columns(
        income=pl.Series(np.where(missing[:, 0], np.nan, income)).fill_nan(None),
        colour=pl.Series([None if gap else text for gap, text in zip(missing[:, 1], colour, strict=True)]),
    )


def table_case(folder: Path, target: str = "binary", model: Tables | None = None, **data: Any) -> Case:
    """One CSV file, two silos by columns; the new rows have a category that training never saw."""
    people(120, target=target, first=0).write_csv(folder / "people.csv")
    new = people(30, target=target, first=1000)
    known = pl.Series(["violet", *new["colour"].to_list()[1:]])
    new.with_columns(colour=known).write_csv(folder / "test.csv")
    new.with_columns(colour=known).drop("y").write_csv(folder / "new.csv")
    settings = {"impute": "median", "clip": 1.5, "categorical": ["code"]} | data
    return Case(
        {
            "data": {"path": "people.csv", "test_path": "test.csv", "id": "id", "label": "y"} | settings,
            "federation": {
                "silos": [{"name": "a", "columns": ["age", "colour"]}, {"name": "b", "columns": ["income", "code"]}],
                "clients": 3,
            },
            "model": model or {},
        },
        "new.csv",
    )


def files_case(folder: Path) -> Case:
    """A file per silo with an id column of its own, and a column name that both have."""
    for name, rows, first in (("", 120, 0), ("_test", 30, 1000)):
        frame = people(rows, target="binary", first=first)
        left = frame.select("id", "y", "age", kind="colour").sample(fraction=1.0, shuffle=True, seed=1)
        right = frame.select("income", "code", nr="id", kind=pl.col("code") * 2)
        left.write_csv(folder / f"left{name}.csv")
        right.write_parquet(folder / f"right{name}.parquet")
    silos = [
        {"name": "left", "path": "left.csv", "test_path": "left_test.csv"},
        {"name": "right", "path": "right.parquet", "test_path": "right_test.parquet", "id": "nr"},
    ]
    return Case(
        {"data": {"id": "id", "label": "y", "impute": "mean"}, "federation": {"silos": silos, "labels": "left"}},
        {"left": "left_test.csv", "right": "right_test.parquet"},
    )


def image_case(folder: Path, model: Tables) -> Case:
    """Colour images of bytes, two silos with a half each."""
    random = np.random.default_rng(4)
    x, y = random.integers(0, 256, (90, 6, 8, 3)).astype(np.uint8), random.integers(0, 3, 90)
    x[np.arange(90), y, y] = 255
    new = x[60:], np.arange(500, 530)
    np.savez(folder / "pictures.npz", x_train=x[:60], y_train=y[:60], x_test=x[60:], y_test=y[60:], id_test=new[1])
    np.savez(folder / "new.npz", x=x[60:], id=new[1])
    return Case(
        {"data": {"name": "pictures", "clip": 1.2}, "federation": {"split": "halves"}, "model": model},
        "new.npz",
    )


def sequence_case(folder: Path) -> Case:
    """Measurements with gaps in two silos, and a third with what does not change in time."""
    random = np.random.default_rng(5)
    x, static, y = random.normal(size=(90, 5, 4)), random.normal(size=(90, 2)), random.integers(0, 2, 90)
    x[:, :, 0] += y[:, None]
    x[random.random(x.shape) < 0.2] = np.nan
    names: Tables = {"feature_names": np.array(list("pqrs")), "static_names": np.array(["age", "sex"])}
    arrays: Tables = {"x_train": x[:60], "y_train": y[:60], "static_train": static[:60]}
    np.savez(folder / "ward.npz", **arrays, x_test=x[60:], y_test=y[60:], static_test=static[60:], **names)
    np.savez(folder / "new.npz", x=x[60:], static=static[60:], **names)
    silos = [
        {"name": "monitor", "columns": ["s", "p"]},
        {"name": "lab", "columns": ["q", "r"]},
        {"name": "desk", "groups": ["static"]},
    ]
    return Case(
        {
            "data": {"name": "ward", "impute": "mean", "clip": 2.0},
            "federation": {"silos": silos},
            "model": {"block": "lstm", "hidden": [4], "blocks": {"desk": {"block": "linear"}}},
        },
        "new.npz",
    )


def trained(folder: Path, case: Case, **sections: Tables) -> tuple[Path, Simulator]:
    """A run of the case, and its simulator after the last round as its checkpoint has it: no model file is read."""
    tables: Tables = {"algorithm": {"name": "tdcd"}, "run": {"rounds": 3, "threads": 1}}
    for section, keys in (case.tables | sections).items():
        tables[section] = tables.get(section, {}) | keys
    (folder / "case.toml").write_bytes(msgspec.toml.encode(tables))
    config = read_config(folder / "case.toml")
    out = folder / "run"
    train(config, out=out, folder=folder)
    simulator = prepare(config, folder=folder).simulator
    tensors, state = read_checkpoint(out / "checkpoint" / "state.safetensors")
    simulator.restore(tensors, state.simulator)
    return out, simulator


def scores_of_test_rows(simulator: Simulator) -> Tensor:
    """Scores of the test rows, which training did not see, by the simulator."""
    return simulator.scores([silo.test for silo in simulator.data.silos])


def paths(folder: Path, new: str | dict[str, str]) -> Path | dict[str, Path]:
    return folder / new if isinstance(new, str) else {silo: folder / name for silo, name in new.items()}
