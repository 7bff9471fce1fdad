"""Rows that each worker reads for itself: the run of rows that are read here, for any number of workers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch
from torch import Tensor

from crosshatch.errors import ConfigError, CrosshatchError, DataError
from crosshatch.runs.config import Config, read_config
from crosshatch.runs.prepare import prepare
from crosshatch.runs.train import train
from crosshatch.simulator.simulator import Simulator
from crosshatch.workers.apart import row_files, sums
from crosshatch.workers.apart.load import RowsElsewhere, load_apart
from crosshatch.workers.apart.streamed_rows import stream
from crosshatch.workers.apart.sums import Moments
from crosshatch.workers.crew import Crew, InlineWorkers
from crosshatch.workers.employ import employ
from tests.workers.hands import Hands

ROWS = 700
CONFIG = """
data = {path = "rows.csv", label = "label", id = "id"}
federation = {silos = 2, clients = 5}
algorithm = {name = "tdcd", local_steps = 3, step_size = 0.1, batch_size = 32}
evaluate = {every = 5}
run = {rounds = 10, seed = 7, threads = 1, workers = 0}
"""
VARIANTS = {
    "Parquet": ['data.path="rows.parquet"'],
    "CSV, float64": ['run.precision="float64"'],
    "not standardised, clipped": ["data.standardise=false", "data.clip=1.5"],
    "codes": ['data.categorical=["f1"]', 'data.leave_out=["f4"]'],
    "test and validation files": ['data.test_path="test.csv"', 'data.validation="validation.csv"'],
    "some rows": ["data.validation=0.1", "data.limit=300", "data.balance=true", "evaluate.test_samples=50"],
    "clients by column": ['federation.samples={kind="column", column="ward"}', "federation.clients=1"],
    "groups": [
        'federation.group_samples={kind="column", column="ward"}',
        "algorithm.name=hsgd",
        "algorithm.global_steps=3",
        "algorithm.fraction=0.5",
        "algorithm.batch_size=",
    ],
    "together, weighted": ['data.split_by="ward"', 'data.sample_weights="f5"'],
    "labels held": ['federation.labels="silo2"'],
    "one silo of two": ['federation.only=["silo2"]'],
    "per client": ["evaluate.per_client=true"],
}


def rows(seed: int, count: int) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(count, 5)) * [1, 2, 3, 4, 5] + [5, 4, 3, 2, 1]
    return pl.DataFrame({
        "id": seed * 10_000 + np.arange(count),
        "f1": rng.integers(0, 3, count), **{f"f{k + 2}": x[:, k] for k in range(3)}, "f5": rng.uniform(1, 2, count),
        "ward": np.array(["north", "east", "south"])[rng.integers(0, 3, count)],
        "label": np.where(x[:, 0] + x[:, 1] / 2 > 7, "yes", "no"),
    })  # fmt: skip


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for number, (name, count) in enumerate({"rows": ROWS, "test": 120, "validation": 90}.items()):
        rows(number, count).write_csv(f"{name}.csv")
        rows(number, count).write_parquet(f"{name}.parquet")
    Path("run.toml").write_text(CONFIG)
    return tmp_path


def config(*changes: str) -> Config:
    return read_config("run.toml", changes)


def kept(run: Path) -> dict[str, object]:
    """What must be the same of two runs."""
    files: dict[str, object] = {path.name: path.read_bytes() for path in sorted((run / "model").iterdir())}
    lines = map(json.loads, (run / "metrics.jsonl").read_text().splitlines())
    summary = json.loads((run / "summary.json").read_text())
    files["lines"] = [{key: value for key, value in line.items() if key != "wall_seconds"} for line in lines]
    files |= {key: summary[key] for key in summary if key not in ("wall_seconds", "workers", "name")}
    files["best_round"] = {**summary.get("best_round", {}), "wall_seconds": None}
    return files


@pytest.mark.parametrize("changes", VARIANTS.values(), ids=VARIANTS)
def test_same_run(home: Path, changes: list[str]) -> None:
    train(config(*changes), out="here")
    train(config(*changes, "run.load=apart"), out="apart")
    assert kept(home / "apart") == kept(home / "here")


def with_crew(config: Config, crew: Crew) -> Simulator:
    """Some rounds with rows that a crew reads."""
    found: list[RowsElsewhere] = []

    def load(config: Config, _: Path | None) -> object:
        dataset = load_apart(config, crew)
        assert isinstance(dataset.elsewhere, RowsElsewhere)
        found.append(dataset.elsewhere)
        return dataset

    simulator = prepare(config, folder=None, load=load).simulator  # type: ignore[arg-type]
    employ(simulator, crew, found[0])
    for _ in range(5):
        simulator.run_round()
    return simulator


def numbers(simulator: Simulator) -> Iterator[Tensor]:
    yield from simulator.weights
    yield torch.tensor([simulator.objective(), simulator.objective(50), *simulator.evaluate().values()])


@pytest.fixture
def short_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (row_files, sums):
        monkeypatch.setattr(module, "BATCH", 64)


@pytest.mark.usefixtures("home", "short_frames")
@pytest.mark.parametrize("impute", ["none", "mean", "zero"])
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_many_frames(impute: str, kind: str) -> None:
    """Sums over frames round otherwise than one sum over all rows, but alike for any number of workers."""
    changes = [f'data.path="rows.{kind}"', f"data.impute={impute}"]
    if impute != "none":
        gaps = rows(0, ROWS).with_columns(
            pl.when(pl.int_range(pl.len()) % 7 != 0).then(pl.col("f2")),
            pl.when(pl.int_range(pl.len()) % 11 != 0).then(pl.col("ward")),
        )
        gaps.write_csv("rows.csv")
        gaps.write_parquet("rows.parquet")
    inline = with_crew(config(*changes), InlineWorkers())
    plain = prepare(config(*changes), folder=None).simulator
    for mine, usual in zip(inline.data.silos, plain.data.silos, strict=True):
        assert mine.features == usual.features
    for _ in range(5):
        plain.run_round()
    for one, other in zip(numbers(inline), numbers(plain), strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=2e-6)
    for crew in (Hands(1), Hands(3), Hands(5, dies=iter([True, False] * 1000).__next__)):
        assert all(map(torch.equal, numbers(with_crew(config(*changes), crew)), numbers(inline)))


def test_moments() -> None:
    rng = np.random.default_rng(2)
    values = 1e3 + rng.normal(size=1000)
    found = Moments()
    for some in np.split(values, [0, 1, 10, 10, 500]):
        found += Moments.of(some)
    assert found.count == 1000
    assert found.mean == pytest.approx(values.mean(), rel=1e-15)
    assert found.deviation == pytest.approx(values.std(), rel=1e-12)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (["data.impute=median"], "a median is none: set data.impute = 'mean' or 'zero', or leave out run.load"),
        (
            ["data.path=", "data.label=", "data.id=", "data.name=wine"],
            "is for a table of your own: set data.path, or leave out run.load",
        ),
        (["algorithm.step_size=auto"], "no features here to choose algorithm.step_size by: give a number"),
        (['evaluate.metrics=["suboptimality"]'], "take 'suboptimality' out of evaluate.metrics"),
        (["data.path=gone.csv"], "gone.csv: check the path"),
        (["data.label=lable"], "unknown label column 'lable'"),
    ],
)
def test_refused(home: Path, changes: list[str], said: str) -> None:
    with pytest.raises(CrosshatchError) as caught:
        train(config(*changes, "run.load=apart"), out="out")
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not (home / "out").exists()


def test_without_workers(home: Path) -> None:
    text = (home / "run.toml").read_text()
    (home / "run.toml").write_text(text.replace(", workers = 0", ""))
    with pytest.raises(ConfigError, match=r"run\.load = 'apart' has workers read their own rows: set run\.workers"):
        config("run.load=apart")


@pytest.mark.usefixtures("home", "short_frames")
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_file_that_grew(kind: str) -> None:
    found = load_apart(config(f'data.path="rows.{kind}"'), InlineWorkers()).elsewhere
    assert isinstance(found, RowsElsewhere)
    more = pl.concat([rows(0, ROWS), rows(9, 1)])
    more.write_csv("rows.csv")
    more.write_parquet("rows.parquet")
    with pytest.raises(DataError, match="has 701 rows here and 700 where the run was started: give every machine"):
        list(found.files.frames(["f2"]))


LOADER = """
import polars as pl

def frames():
    rows = pl.read_csv("rows.csv")
    for low in range(0, len(rows), 90):
        yield rows[low : low + 90].to_dict()
"""


def test_own_loader_and_archive(home: Path) -> None:
    """The run of the same rows in a table."""
    (home / "mine.py").write_text(LOADER)
    train(config("data.path=rows.parquet"), out="here")
    train(config('data.path="mine.py:frames"', "run.load=apart"), out="apart")
    assert kept(home / "apart") == kept(home / "here")
    table = rows(0, ROWS).drop("id", "ward").cast({"f1": pl.Float64})
    table.rename({"label": "y"}).write_parquet("named.parquet")
    x = table.drop("label")
    np.savez(
        "named.npz",
        x=np.ascontiguousarray(x.to_numpy()),
        y=table["label"].to_numpy().astype(str),
        feature_names=x.columns,
    )
    changes = ["data.id=", "data.label=y"]
    train(config(*changes, "data.path=named.parquet"), out="table")
    train(config(*changes, "data.path=named.npz", "run.load=apart"), out="archive")
    assert kept(home / "archive") == kept(home / "table")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("gone.npz", "no file .*gone.npz"),
        ("bad.npz", "bad.npz is not a readable npz archive"),
        ("spoilt.npz", "spoilt.npz is not a readable npz archive with x and y: "),
        ("flat.npz", r"flat.npz is not .*x is \(3,\) and y \(3,\): \(n, columns\), row after row"),
        ("mine.py:other", "has no function 'other'"),
        ("mine.py:raising", r"could not be read: ZeroDivisionError: division by zero \(line 3\)"),
    ],
)
def test_streams_refused(home: Path, name: str, said: str) -> None:
    (home / "bad.npz").write_bytes(b"nothing")
    np.savez_compressed("spoilt.npz", y=np.zeros(9000), x=np.random.default_rng(1).normal(size=(9000, 8)))
    content = bytearray((home / "spoilt.npz").read_bytes())
    middle = len(content) // 2
    content[middle : middle + 100] = bytes(100)
    (home / "spoilt.npz").write_bytes(content)
    np.savez("flat.npz", x=np.zeros(3), y=np.zeros(3))
    (home / "mine.py").write_text("def raising():\n    yield {'f1': [1]}\n    1 / 0\n")
    with pytest.raises(DataError, match=said):
        list(stream(home / name, 10))


@pytest.mark.usefixtures("home")
def test_words_far_down() -> None:
    """What a column is was guessed by rows before."""
    head = "f1,f2,label\n" + "".join(f"{i},{i % 7},{i % 2}\n" for i in range(60_000))
    Path("rows.csv").write_text(head + "many,1,0\n")
    with pytest.raises(DataError, match=r"column 'f1'.*'many'"):
        train(config("data.path=rows.csv", "run.load=apart"), out="out")
