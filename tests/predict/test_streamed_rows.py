"""Files scored as they are read: the same bits as at once, whatever is read at a time, in little memory."""

from __future__ import annotations

import io
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from crosshatch import load_run
from crosshatch.errors import DataError
from crosshatch.local.forward import BATCH_ROWS
from crosshatch.predict.noticed import Noticed
from crosshatch.predict.row_batches import OutOfStepError, streamed
from crosshatch.predict.row_sources import files_to_stream
from crosshatch.runs.trained.trained_run import TrainedRun
from tests.cli.conftest import command  # noqa: F401 - `command` is a fixture
from tests.predict.cases import Case, people, scores_of_test_rows, table_case, trained
from tests.support.command_line import Command, environment
from tests.support.predicting import HEAD

ROWS = 2 * BATCH_ROWS + 77


@pytest.fixture(name="made", scope="module")
def made_files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with a head, and more than two batches of new rows in a file per silo."""
    folder = tmp_path_factory.mktemp("made")
    trained(folder, table_case(folder, "multiclass", HEAD | {"head": "mlp", "head_hidden": [4]}))
    write(folder, people(ROWS, target="binary", first=1000).drop("y"))
    return folder


def write(folder: Path, frame: pl.DataFrame, *, right: pl.DataFrame | None = None) -> dict[str, Path]:
    frame.select("id", "age", "colour").write_csv(folder / "a.csv")
    (frame if right is None else right).select("id", "income", "code").write_csv(folder / "b.csv")
    return files(folder)


def files(folder: Path) -> dict[str, Path]:
    return {"a": folder / "a.csv", "b": folder / "b.csv"}


def as_read(run: TrainedRun, data: dict[str, Path] | list[Path], rows: int) -> bytes:
    """What comes of reading so many rows at a time."""
    found = files_to_stream(data, run.model.parts, None)
    assert found is not None
    out = io.BytesIO()
    batches = streamed(run.model.parts, *found, id_column=None, rows=rows)
    for i, batch in enumerate(run._score(batches, Noticed((), frozenset()))):
        batch.frame.write_csv(out, include_header=i == 0)
    return out.getvalue()


@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.sampled_from([1, 2, 500, BATCH_ROWS - 1, BATCH_ROWS, BATCH_ROWS + 1, 2 * BATCH_ROWS, ROWS]),
    st.integers(300, 40_000),
)
def test_the_same_bits_whatever_is_read_at_a_time(made: Path, count: int, rows: int) -> None:
    run = load_run(made / "run")
    some = {}
    for name, path in files(made).items():
        some[name] = made / f"some_{name}.csv"
        some[name].write_text("".join(path.read_text().splitlines(keepends=True)[: count + 1]))
    at_once = run.predict(some)
    assert len(at_once.ids) == count
    assert as_read(run, some, rows) == at_once.csv
    prepared = run.interpret(run.prepare(some))
    assert np.array_equal(prepared.scores, at_once.scores)
    assert prepared.csv == at_once.csv
    frames = {name: pl.read_csv(path, schema_overrides={"colour": pl.String}) for name, path in some.items()}
    assert run.predict(frames).csv == at_once.csv
    assert run.predict_into(made / "scores.csv", some).rows == count
    assert (made / "scores.csv").read_bytes() == at_once.csv


def test_as_the_simulator_scores_more_than_a_batch(tmp_path: Path) -> None:
    case = table_case(tmp_path, "binary", HEAD)
    people(BATCH_ROWS + 900, target="binary", first=1000).write_csv(tmp_path / "test.csv")
    out, simulator = trained(tmp_path, case)
    wanted = scores_of_test_rows(simulator).numpy()
    run = load_run(out)
    assert np.array_equal(run.predict().scores, wanted)
    assert np.array_equal(run.predict(tmp_path / "test.csv").scores, wanted)
    run.predict_into(tmp_path / "scores.csv", tmp_path / "test.csv")
    assert np.array_equal(pl.read_csv(tmp_path / "scores.csv")["score"].to_numpy().astype(np.float32), wanted[:, 0])


def test_parquet_and_files_without_names(made: Path) -> None:
    run = load_run(made / "run")
    wanted = run.predict(files(made)).csv
    pl.read_csv(made / "b.csv").write_parquet(made / "b.parquet")
    assert as_read(run, [made / "b.parquet", made / "a.csv"], 5000) == wanted
    assert as_read(run, {"a": made / "a.csv", "b": made / "b.parquet"}, 5000) == wanted


def test_rows_without_ids_are_numbered(tmp_path: Path) -> None:
    case = table_case(tmp_path)
    case.tables["data"].pop("id")
    case.tables["data"]["leave_out"] = ["id"]
    out, _ = trained(tmp_path, case)
    people(ROWS, target="binary", first=5).drop("y", "id").write_csv(tmp_path / "many.csv")
    run = load_run(out)
    run.predict_into(tmp_path / "scores.csv", tmp_path / "many.csv")
    assert pl.read_csv(tmp_path / "scores.csv")["id"].to_list() == list(range(1, ROWS + 1))
    assert (tmp_path / "scores.csv").read_bytes() == run.predict(tmp_path / "many.csv").csv
    assert as_read(run, [tmp_path / "many.csv"], 1000) == (tmp_path / "scores.csv").read_bytes()


Change = Callable[[pl.DataFrame], pl.DataFrame]
LATE = BATCH_ROWS + 100
OUT_OF_STEP: dict[str, Change] = {
    "another order": lambda frame: frame.sample(fraction=1.0, shuffle=True, seed=1),
    "two swapped, late": lambda frame: pl.concat([frame[:LATE], frame[LATE : LATE + 2].reverse(), frame[LATE + 2 :]]),
    "written with .0": lambda frame: frame.with_columns(id=pl.col("id").cast(pl.Float64)),
}


@pytest.mark.parametrize("name", OUT_OF_STEP)
def test_out_of_step_all_are_at_hand(made: Path, tmp_path: Path, name: str) -> None:
    run = load_run(made / "run")
    frame = people(ROWS, target="binary", first=1000)
    data = write(tmp_path, frame, right=OUT_OF_STEP[name](frame))
    with pytest.raises(OutOfStepError):
        as_read(run, data, 5000)
    run.predict_into(tmp_path / "scores.csv", data)
    assert (tmp_path / "scores.csv").read_bytes() == run.predict(files(made)).csv


def late(name: str, value: object) -> Change:
    """A change to one cell behind the first batch."""
    return lambda frame: frame.with_columns(
        pl.when(pl.int_range(pl.len()) == LATE).then(pl.lit(value)).otherwise(pl.col(name)).alias(name)
    )


BAD: dict[str, tuple[Change, str]] = {
    "an id twice": (late("id", 1000), "b.csv: id '1000' in column 'id' occurs 2 times"),
    "no id": (late("id", None), f"b.csv: id 'id' has no value in row {LATE + 1} of {ROWS}"),
    "an id too few": (lambda frame: frame[:-1], f"id '{1000 + ROWS - 1}' of "),
    "an id too many": (
        lambda frame: pl.concat([frame, frame[:1].with_columns(id=pl.lit(7, dtype=pl.Int64))]),
        "id '7' of ",
    ),
    "text": (
        lambda frame: late("income", "much")(frame.with_columns(pl.col("income").cast(pl.String))),
        f"b.csv: column 'income' has 'much' in row {LATE + 1}",
    ),
    "infinity": (late("income", np.inf), "column 'income' has 1 infinite values"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_mistake_far_below_leaves_nothing(made: Path, tmp_path: Path, command: Command, name: str) -> None:  # noqa: F811
    change, message = BAD[name]
    frame = people(ROWS, target="binary", first=1000)
    data = write(tmp_path, frame, right=change(frame.with_columns(pl.col("id").cast(pl.Int64))))
    before = sorted(path.name for path in tmp_path.iterdir())
    with pytest.raises(DataError) as raised:
        load_run(made / "run").predict_into(tmp_path / "scores.csv", data)
    assert message in str(raised.value)
    ended = command("predict", made / "run", *(word for silo in data for word in ("--data", f"{silo}={data[silo]}")))
    assert (ended.code, ended.out, ended.err.count("\n")) == (2, "", 1)
    assert sorted(path.name for path in tmp_path.iterdir()) == before


@pytest.mark.slow
def test_a_million_rows_take_600_megabytes_at_most(tmp_path: Path) -> None:
    """Above a process that has the model loaded; a bank's and an insurer's file, ten columns each, text among them."""
    random = np.random.default_rng(1)

    def customers(rows: int, first: int) -> dict[str, pl.DataFrame]:
        made = {}
        for silo, words in (("bank", 60), ("insurer", 40)):
            columns: dict[str, object] = {"id": np.arange(first, first + rows)}
            columns |= {f"{silo}{i}": random.lognormal(5, 1, rows) for i in range(6)}
            columns |= {f"{silo} count {i}": random.integers(0, 90, rows) for i in range(2)}
            columns |= {
                f"{silo} word {i}": random.choice([f"word {k:03d}" for k in range(words)], rows) for i in (1, 2)
            }
            made[silo] = pl.DataFrame(columns)
        return made

    known, new = customers(3000, 0), customers(1_000_000, 10_000)
    known["bank"] = known["bank"].with_columns(y=(known["bank"]["bank0"] > 150).cast(pl.Int64))
    for silo in known:
        known[silo].write_csv(tmp_path / f"{silo}.csv")
        new[silo].write_csv(tmp_path / f"new_{silo}.csv")
    (tmp_path / "c.toml").write_text(
        'data = {id = "id", label = "y"}\nalgorithm = {name = "fedbcd"}\nrun = {rounds = 3}\n'
        'federation = {silos = [{name = "bank", path = "bank.csv"}, {name = "insurer", path = "insurer.csv"}]}\n'
    )
    program = f"""
import resource, sys, crosshatch
from pathlib import Path
if not Path("run").is_dir():
    crosshatch.train(crosshatch.read_config("c.toml"), out="run")
run = crosshatch.load_run("run")
if len(sys.argv) > 1:
    files = {{"bank": "new_bank.csv", "insurer": "new_insurer.csv"}}
    assert run.predict_into("scores.csv", files).rows == 1_000_000
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / {2**10 if sys.platform != "darwin" else 2**20})
"""
    peaks = []
    for arguments in ([], [], ["score"]):  # the first one trains
        words = [sys.executable, "-c", program, *arguments]
        ran = subprocess.run(words, cwd=tmp_path, env=environment(), capture_output=True, text=True, check=True)
        peaks.append(float(ran.stdout))
    assert peaks[2] - peaks[1] < 600


def test_files_in_another_dialect(tmp_path: Path) -> None:
    """Semicolons, decimal commas, another encoding and dates, as in training: also from an exported folder."""

    def written(rows: int, first: int, path: Path) -> None:
        frame = people(rows, target="binary", first=first, gaps=False)
        lines = ["Nr;Größe;Farbe;Tag;y"]
        for number, age, colour, _, code, y in frame.select("id", "age", "colour", "income", "code", "y").iter_rows():
            lines.append(f'K-{number:06d};{f"{age:.3f}".replace(".", ",")};"{colour};ß";{code:02d}.03.2024;{y}')
        path.write_bytes(("\r\n".join(lines) + "\r\n").encode("cp1252"))

    written(150, 0, tmp_path / "known.csv")
    written(ROWS, 1000, tmp_path / "new.csv")
    silos = [{"name": "a", "columns": ["Größe"]}, {"name": "b", "columns": ["Farbe", "Tag"]}]
    data = {"path": "known.csv", "id": "Nr", "label": "y", "csv": {"decimal": ","}}
    out, _ = trained(tmp_path, Case({"data": data, "federation": {"silos": silos}}, "new.csv"))
    run = load_run(out)
    run.export_folder(tmp_path / "moved")
    at_once = run.predict(tmp_path / "new.csv")
    assert at_once.ids[0] == "K-001000"
    assert len(np.unique(at_once.scores)) > ROWS / 2
    assert as_read(run, [tmp_path / "new.csv"], 3000) == at_once.csv
    load_run(tmp_path / "moved").predict_into(tmp_path / "scores.csv", tmp_path / "new.csv")
    assert (tmp_path / "scores.csv").read_bytes() == at_once.csv
