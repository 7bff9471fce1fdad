"""`crosshatch predict` and `export` as people use them: nothing but the run directory, and every bad input refused."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch

from crosshatch import load_run
from crosshatch.errors import DataError
from tests.cli.conftest import command  # noqa: F401 - `command` is a fixture
from tests.predict.cases import files_case, image_case, scores_of_test_rows, sequence_case, table_case, trained
from tests.support.command_line import Command, environment

VIOLET = (
    "column 'colour': 1 of 26 values are categories that training did not have: 'violet' (1); they count as none of "
    "the known ones\n"
)
PROGRAM = """
import sys, torch
program = torch.export.load("model.pt2").module()
print(float(program(torch.zeros(4, int(sys.argv[1])), torch.zeros(4, int(sys.argv[2])))[3, 0].detach()))
assert "crosshatch" not in sys.modules
"""


@pytest.fixture
def made(tmp_path: Path) -> Path:
    """A folder with the run of a table case, its files, and the new rows in a file per silo too."""
    folder = tmp_path / "made"
    folder.mkdir()
    trained(folder, table_case(folder))
    new = pl.read_csv(folder / "new.csv", schema_overrides={"colour": pl.String})
    new.select("id", "age", "colour").write_csv(folder / "a.csv")
    new.select("id", "income", "code").write_csv(folder / "b.csv")
    return folder


def test_a_fresh_process_needs_the_run_directory_alone(tmp_path: Path) -> None:
    before, after = tmp_path / "before", tmp_path / "after"
    before.mkdir()
    out, simulator = trained(before, table_case(before))
    wanted = scores_of_test_rows(simulator).numpy()
    shutil.move(out, after / "run")
    shutil.copy(before / "new.csv", after / "new.csv")
    shutil.rmtree(before)

    def run(*arguments: str, noted: str = "") -> str:
        words = [sys.executable, "-m", *arguments] if arguments[0] == "crosshatch" else [sys.executable, *arguments]
        ended = subprocess.run(words, cwd=after, env=environment(), capture_output=True, text=True, check=False)
        assert ended.returncode == 0, ended.stderr
        assert ended.stderr == noted
        return ended.stdout

    said = run(
        "crosshatch", "predict", "run", "--data", "new.csv", "--out", "scores.csv", noted=f"note: new.csv: {VIOLET}"
    )
    assert said == "30 rows scored into scores.csv; score and probability are those of class 'yes'\n"
    found = pl.read_csv(after / "scores.csv")
    assert found.columns == ["id", "score", "probability", "class"]
    np.testing.assert_allclose(found["score"].to_numpy(), wanted[:, 0], rtol=0, atol=1e-6)
    for printed in (["--out", "-"], []):
        said = run("crosshatch", "predict", "run", "--data", "new.csv", *printed, noted=f"note: new.csv: {VIOLET}")
        assert said == (after / "scores.csv").read_text()

    said = run("crosshatch", "export", "run", "--out", "model.pt2")
    assert said == "exported into model.pt2; it takes a (rows, 5), b (rows, 5)\n"
    module = load_run(after / "run").module()
    expected = module(torch.zeros(4, 5), torch.zeros(4, 5))[3, 0].detach()
    assert float(run("-c", PROGRAM, "5", "5")) == pytest.approx(float(expected), abs=1e-6)


def test_each_silo_keeps_its_own(made: Path) -> None:
    """What is in one silo's file says nothing of another silo's columns, and what is common nothing of any."""
    texts = {name: (made / "run" / "model" / f"{name}.json").read_text() for name in ("a", "b", "model")}
    assert "age" in texts["a"]
    assert "income" in texts["b"]
    assert not any(word in texts["a"] for word in ("income", "code"))
    assert not any(word in texts["b"] for word in ("age", "colour"))
    assert not any(word in texts["model"] for word in ("age", "colour", "income", "code"))
    assert json.loads(texts["model"])["classes"] == ["no", "yes"]


def test_common_ids_alone(made: Path, command: Command) -> None:  # noqa: F811
    pl.read_csv(made / "b.csv").tail(20).write_csv(made / "b.csv")
    ended = command("predict", made / "run", "--data", made / "a.csv", "--data", made / "b.csv", "--common")
    assert (ended.code, ended.err) == (0, "note: 10 ids are not in all files and were left out\n")
    assert [line.split(",")[0] for line in ended.out.splitlines()] == ["id", *map(str, range(1010, 1030))]


def test_another_id_column(made: Path, command: Command) -> None:  # noqa: F811
    for name in ("a.csv", "b.csv"):
        pl.read_csv(made / name).rename({"id": "nr"}).write_csv(made / name)
    ended = command("predict", made / "run", "--data", made / "a.csv", "--data", made / "b.csv", "--id", "nr")
    assert (ended.code, ended.err) == (0, f"note: {made / 'a.csv'}: {VIOLET}")


def test_the_runs_own_test_rows(made: Path, command: Command) -> None:  # noqa: F811
    ours = command("predict", made / "run")
    assert ours.out == command("predict", made / "run", "--data", made / "new.csv").out
    (made / "test.csv").unlink()
    ended = command("predict", made / "run")
    assert (ended.code, "test.csv" in ended.err) == (2, True)


def test_a_run_that_diverged_warns(made: Path, command: Command) -> None:  # noqa: F811
    summary = made / "run" / "summary.json"
    content = json.loads(summary.read_text()) | {"diverged": {"round": 2, "why": "it grew"}}
    summary.write_text(json.dumps(content))
    ended = command("predict", made / "run", "--data", made / "new.csv", "--out", made / "scores.csv")
    assert ended.code == 0
    warning = f"warning: the training of {made / 'run'} diverged: it grew\n"
    assert ended.err == f"{warning}note: {made / 'new.csv'}: {VIOLET}"


def cut(name: str, change: Callable[[pl.DataFrame], pl.DataFrame]) -> Callable[[Path], None]:
    """A change to one of the files of new rows."""

    def act(made: Path) -> None:
        change(pl.read_csv(made / name, schema_overrides={"colour": pl.String})).write_csv(made / name)

    return act


def without_results(made: Path) -> None:
    """As a run that was killed leaves its folder."""
    shutil.rmtree(made / "run" / "model")
    (made / "run" / "summary.json").unlink()


def without(*names: str) -> Callable[[Path], None]:
    """Without these files of the run."""

    def act(made: Path) -> None:
        for name in names:
            (made / "run" / name).unlink()

    return act


def nothing(made: Path) -> None:
    """Everything is as it was."""


def break_weights(made: Path) -> None:
    (made / "run" / "model" / "a.safetensors").write_bytes(b"no weights")


def swap_weights(made: Path) -> None:
    shutil.copy(made / "run" / "model" / "b.safetensors", made / "run" / "model" / "a.safetensors")
    path = made / "run" / "model" / "a.json"
    text = json.loads(path.read_text())
    text["input_shape"] = [9]
    path.write_text(json.dumps(text))


def break_shape(made: Path) -> None:
    path = made / "run" / "model" / "a.json"
    path.write_text(path.read_text().replace('"kind": "numbers"', '"kind": "letters"'))


JOINT = ["--data", "new.csv"]
SILOS = ["--data", "a=a.csv", "--data", "b=b.csv"]
BAD: dict[str, tuple[list[str], Callable[[Path], None], str]] = {
    "no file": (["--data", "nowhere.csv"], nothing, "no file nowhere.csv: check the path"),
    "a kind of file": (["--data", "case.toml"], nothing, "unsupported kind of file '.toml': use .csv, .tsv"),
    "a broken archive": (["--data", "x.npz"], lambda made: _write(made / "x.npz", "no"), "not a readable npz archive"),
    "a silo without a file": (["--data", "a=a.csv"], nothing, "no rows for silo 'b': give its file too, as b=FILE"),
    "not a silo": ([*SILOS, "--data", "c=a.csv"], nothing, "'c' is not a silo of this model: its silos are a, b"),
    "a silo twice": ([*SILOS, "--data", "a=b.csv"], nothing, "two files for silo 'a': a.csv and b.csv"),
    "some silos named": (["--data", "a=a.csv", "--data", "b.csv"], nothing, "names no silo and others do"),
    "the wrong silo": (["--data", "a=b.csv", "--data", "b=a.csv"], nothing, "b.csv has no column 'age'"),
    "one file of two": (["--data", "a.csv"], nothing, "a.csv has no column 'income', which silo 'b' was trained on"),
    "a file too many": ([*JOINT, "--data", "a.csv"], nothing, "could both be: say so by a=FILE"),
    "no such columns": (["--data", "a.csv", "--data", "test2.csv"], lambda m: _write(m / "test2.csv", "id,z\n1,2\n"),
                        "silo 'b' cannot be told, none has all its columns: say so by b=FILE"),
    "a column": (JOINT, cut("new.csv", lambda f: f.drop("code")), "new.csv has no column 'code', which silo 'b'"),
    "an id column": (JOINT, cut("new.csv", lambda f: f.drop("id")), "new.csv: unknown id column 'id'"),
    "another id column": ([*JOINT, "--id", "nr"], nothing, "new.csv: unknown id column 'nr'"),
    "an id twice": (JOINT, cut("new.csv", lambda f: pl.concat([f, f.head(1)])), "id '1000' in column 'id' occurs 2"),
    "an id twice in a silo": (SILOS, cut("b.csv", lambda f: pl.concat([f, f.head(1)])), "b.csv: id '1000' in column"),
    "an id too few": (SILOS, cut("b.csv", lambda f: f.tail(29)), r"id '1000' of a.csv is not in b.csv (1 such ids)"),
    "an id too many": (SILOS, cut("a.csv", lambda f: f.tail(28)), r"id '1000' of b.csv is not in a.csv (2 such ids)"),
    "no common id": ([*SILOS, "--common"], cut("a.csv", lambda f: f.with_columns(pl.col("id") + 99)), "no id is in"),
    "an id without a value": (JOINT, cut("new.csv", lambda f: f.with_columns(id=None)), "id 'id' has no value in row"),
    "text for numbers": (JOINT, cut("new.csv", lambda f: f.with_columns(age=pl.lit("old"))), "'age' has 'old' in row"),
    "infinity": (JOINT, cut("new.csv", lambda f: f.with_columns(age=np.inf)), "column 'age' has 30 infinite values"),
    "no rows": (JOINT, cut("new.csv", lambda f: f.head(0)), "new.csv has no rows"),
    "options without files": (["--common"], nothing, "--id and --common are about files with new rows"),
    "out is a folder": ([*JOINT, "--out", "run"], nothing, "--out run is a folder: name a file in it"),
    "out is nowhere": ([*JOINT, "--out", "no/where.csv"], nothing, "there is no folder no, make it"),
    "out is the input": ([*SILOS, "--out", "b.csv"], nothing, "--out b.csv is one of the files with new rows"),
    "an unfinished run": (JOINT, without_results, "has not finished and left no model: go on with crosshatch train"),
    "no best round": ([*JOINT, "--round", "best"], nothing, "run has no best round: train with validation rows"),
    "another round": ([*JOINT, "--round", "first"], nothing, "'first' is not one of 'best', 'last'"),
    "not a run": (JOINT, without("config.toml"), "is not a run directory: name one"),
    "no model": (JOINT, lambda made: shutil.rmtree(made / "run" / "model"), "has no folder 'model'"),
    "nothing in common": (JOINT, without("model/model.json"), "no file run/model/model.json: get it from where"),
    "no preparation": (JOINT, without("model/b.json"), "no file run/model/b.json: get it from where"),
    "no weights": (JOINT, without("model/b.safetensors"), "no file run/model/b.safetensors: get it from where"),
    "broken weights": (JOINT, break_weights, "run/model/a.safetensors cannot be read"),
    "weights of another": (JOINT, swap_weights, "a.safetensors does not fit its block, which has layers.0"),
    "a broken preparation": (JOINT, break_shape, "run/model/a.json cannot be read (Invalid value 'letters'"),
}  # fmt: skip


def _write(path: Path, text: str) -> None:
    path.write_text(text)


@pytest.mark.parametrize("name", BAD)
def test_bad_input(made: Path, command: Command, monkeypatch: pytest.MonkeyPatch, name: str) -> None:  # noqa: F811
    arguments, change, message = BAD[name]
    change(made)
    monkeypatch.chdir(made)
    before = sorted(path.name for path in made.rglob("*"))
    out = [] if "--out" in arguments else ["--out", "scores.csv"]
    ended = command("predict", "run", *arguments, *out)
    assert ended.code == 2
    assert ended.err.count("\n") == 1
    assert message in ended.err
    assert sorted(path.name for path in made.rglob("*")) == before


def test_a_file_of_no_use(made: Path) -> None:
    run = load_run(made / "run")
    pl.DataFrame({"id": [1], "z": [2]}).write_csv(made / "z.csv")
    with pytest.raises(DataError, match=r"z.csv is of no use: every silo has its rows elsewhere, leave it out"):
        run.predict([made / "a.csv", made / "b.csv", made / "z.csv"])


def test_ids_for_archives(tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    """Images: whole ones, or what each silo holds of them, joined on the array `id`."""
    made = tmp_path / "made"
    made.mkdir()
    monkeypatch.chdir(made)
    trained(made, image_case(made, {}))
    archive = np.load("new.npz")
    x, ids = archive["x"], archive["id"]
    whole = command("predict", "run", "--data", "new.npz")
    assert whole.code == 0
    np.savez("left.npz", x=x[:, :, :4], id=ids)
    np.savez("right.npz", x=x[::-1, :, 4:], id=ids[::-1])
    silos = ("--data", "left=left.npz", "--data", "right=right.npz")
    assert command("predict", "run", *silos).out == whole.out
    bad = {
        "its samples are 6 x 4 x 3, but silo 'left' was trained on images of 6 x 8 x 3": ("--data", "left.npz"),
        "or of the 6 x 4 x 3 that the silo holds": ("--data", "left=right.npz", "--data", "right=small.npz"),
        "wide.npz: its samples are 6 x 9 x 3": ("--data", "wide.npz"),
        "table.csv: it is a table, but silo 'left' was trained on images": ("--data", "table.csv"),
        "bare.npz has no ids, and rows in several files": ("--data", "left=bare.npz", "--data", "right=right.npz"),
        "twice.npz: id '5' in array 'id' occurs 30 times": ("--data", "twice.npz"),
        "odd.npz: 'id' and 'static' must have one row for each of the 30": ("--data", "odd.npz"),
        "units.npz: pixels have fractions": ("--data", "units.npz"),
        "none.npz has no features: expected an array 'x' (or 'x_test'), it has y": ("--data", "none.npz"),
        "empty.npz has no rows": ("--data", "empty.npz"),
    }  # fmt: skip
    np.savez("small.npz", x=x[:, :3], id=ids)
    np.savez("wide.npz", x=np.zeros((30, 6, 9, 3), dtype=np.uint8))
    Path("table.csv").write_text("id,z\n1,2\n")
    np.savez("bare.npz", x=x[:, :, :4])
    np.savez("twice.npz", x=x, id=np.full(30, 5))
    np.savez("odd.npz", x=x, id=ids[:7])
    np.savez("units.npz", x=x / 255.0)
    np.savez("none.npz", y=ids)
    np.savez("empty.npz", x=x[:0])
    for message, arguments in bad.items():
        ended = command("predict", "run", *arguments)
        assert (ended.code, message in ended.err) == (2, True), ended.err


def test_sequences_by_silo(tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    """Columns are found by name; an array of a silo's own may leave names out."""
    made = tmp_path / "made"
    made.mkdir()
    monkeypatch.chdir(made)
    trained(made, sequence_case(made))
    archive = np.load("new.npz")
    x, ids = archive["x"], np.arange(1, 31)
    whole = command("predict", "run", "--data", "new.npz")
    assert whole.code == 0
    np.savez("monitor.npz", x=x[:, :, [0, 3]], id=ids)  # p, s: in the order of the training file
    np.savez("lab.npz", x=x[:, :, [2, 1]], id=ids, feature_names=np.array(["r", "q"]))
    pl.DataFrame({"id": ids, "sex": archive["static"][:, 1], "age": archive["static"][:, 0]}).write_csv("desk.csv")
    silos = ("--data", "monitor=monitor.npz", "--data", "lab=lab.npz", "--data", "desk=desk.csv", "--id", "id")
    assert command("predict", "run", *silos).out == whole.out
    np.savez("short.npz", x=x[:, :4], static=archive["static"])
    np.savez("bare.npz", x=x, feature_names=archive["feature_names"])
    np.savez("flat.npz", x=x[:, 0])
    for name, message in (
        ("short", "its samples are 4 x 4, but silo 'monitor' takes sequences of 5 steps: give an array (rows, 5, "),
        ("bare", "its samples are 5 x 4, but silo 'desk' takes a table with columns age, sex: give one"),
        ("flat", "its samples are 4, but silo 'monitor' takes sequences of 5 steps"),
    ):  # fmt: skip
        ended = command("predict", "run", "--data", f"{name}.npz")
        assert (ended.code, message in ended.err) == (2, True), ended.err


def test_files_with_names_of_their_own(tmp_path: Path, command: Command) -> None:  # noqa: F811
    """`kind` is in both files, and each silo finds its own; the ids are called id and nr."""
    made = tmp_path / "made"
    made.mkdir()
    trained(made, files_case(made))
    files = made / "left_test.csv", made / "right_test.parquet"
    named = command("predict", made / "run", "--data", f"left={files[0]}", "--data", f"right={files[1]}")
    assert (named.code, named.err) == (0, f"note: {files[0]}: not needed, and not looked at: 'y'\n")
    assert command("predict", made / "run", "--data", files[1], "--data", files[0]).out == named.out


def test_the_file_of_an_own_block_is_gone(tmp_path: Path, command: Command) -> None:  # noqa: F811
    made = tmp_path / "made"
    made.mkdir()
    text = "import torch\nclass Net(torch.nn.Linear):\n    def __init__(self, input_shape, outputs):\n"
    (made / "own.py").write_text(f"{text}        super().__init__(input_shape[0], outputs)\n")
    trained(made, table_case(made, "binary", {"block": "own.py:Net"}))
    assert command("predict", made / "run", "--data", made / "new.csv").code == 0
    (made / "own.py").unlink()
    assert command("predict", made / "run", "--data", made / "new.csv").code == 0, "the run has a copy"
    copy = made / "run" / "parts" / "own.py"
    copy.write_text(f"{text}        super().__init__(input_shape[0], outputs, bias=False)\n")
    ended = command("predict", made / "run", "--data", made / "new.csv")
    assert (ended.code, "own.py was changed since the run was made: put it back" in ended.err) == (2, True)
    copy.unlink()
    ended = command("predict", made / "run", "--data", made / "new.csv")
    assert (ended.code, "own.py: get it from where the run was made" in ended.err) == (2, True)


def test_a_block_that_cannot_be_exported(tmp_path: Path, command: Command) -> None:  # noqa: F811
    made = tmp_path / "made"
    made.mkdir()
    (made / "own.py").write_text(
        "import torch\nclass Net(torch.nn.Linear):\n"
        "    def __init__(self, input_shape, outputs):\n        super().__init__(input_shape[0], outputs)\n"
        "    def forward(self, x):\n"
        "        out = super().forward(x)\n        return out * 2 if float(out.detach().sum()) > 1e9 else out\n"
    )
    trained(made, table_case(made, "binary", {"block": "own.py:Net"}))
    ended = command("export", made / "run", "--out", made / "model.pt2")
    assert ended.code == 2
    assert "torch.export does not take this model" in ended.err
    assert ended.err.count("\n") == 1
    assert not list(made.glob("model.pt2*"))
    ended = command("export", made / "run", "--out", made / "no" / "model.pt2")
    assert (ended.code, "there is no folder" in ended.err) == (2, True)


def test_a_silo_must_not_take_the_name_of_a_file(tmp_path: Path, command: Command) -> None:  # noqa: F811
    case = table_case(tmp_path)
    silos = [{"name": "model", "columns": ["age"]}, {"name": "b", "columns": ["income"]}]
    text = "\n".join(f"{key} = {json.dumps(value)}" for key, value in case.tables["data"].items())
    config = f"[data]\n{text}\n[algorithm]\nname = 'fedsgd'\n[run]\nrounds = 1\n[federation]\nsilos = [\n"
    config += ",\n".join(f"{{ name = '{silo['name']}', columns = {silo['columns']} }}" for silo in silos) + "\n]\n"
    (tmp_path / "c.toml").write_text(config)
    ended = command("train", tmp_path / "c.toml")
    assert (ended.code, "it names a file, so no '/', no '.' first, not 'head' or 'model'" in ended.err) == (2, True)
