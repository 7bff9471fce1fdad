"""A model handed over as a folder: it scores elsewhere as it did at home, and nothing damaged or half done is taken."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch
from sklearn.datasets import load_breast_cancer

from crosshatch import load_run, read_config, train
from crosshatch.errors import RunError
from crosshatch.runs.one_writer import one_writer
from crosshatch.runs.trained.read_model import read_common, read_part
from tests.cli.conftest import command  # noqa: F401 - `command` is a fixture
from tests.predict.cases import Case, image_case, scores_of_test_rows, sequence_case, table_case, trained
from tests.support.command_line import Command, environment
from tests.support.predicting import HEAD, OWN_BLOCK
from tests.support.training import StopAt
from tests.support.transfer_runs import config as transfer

CNN = {"block": "cnn", "channels": 3, "dense": 5, "fusion": "head"}
CASES: dict[str, Callable[[Path], Case]] = {
    "table, sum": table_case,
    "table, head": lambda folder: table_case(folder, "multiclass", HEAD),
    "regression": lambda folder: table_case(folder, "regression"),
    "own block": lambda folder: table_case(folder, "binary", {"block": "own.py:Wave"}),
    "images, sum": lambda folder: image_case(folder, {}),
    "images, head": lambda folder: image_case(folder, CNN),
    "sequences": sequence_case,
}


def elsewhere(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The command in a process that has another home, working directory and no data."""
    own = environment() | {"HOME": str(folder / "no home"), "TMPDIR": str(folder)}
    words = [sys.executable, "-m", "crosshatch", *arguments]
    return subprocess.run(words, cwd=folder, env=own, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("name", CASES)
def test_the_same_scores_on_an_empty_machine(tmp_path: Path, name: str) -> None:
    home, machine = tmp_path / "home", tmp_path / "machine"
    home.mkdir()
    machine.mkdir()
    (home / "own.py").write_text(OWN_BLOCK)
    case = CASES[name](home)
    assert isinstance(case.new, str)
    out, simulator = trained(home, case)
    wanted = scores_of_test_rows(simulator).numpy()
    at_home = load_run(out).predict(home / case.new)
    assert np.array_equal(at_home.scores, wanted)
    load_run(out).export_folder(home / "model")
    shutil.move(home / "model", machine / "handed over")
    shutil.copy(home / case.new, machine / case.new)
    shutil.rmtree(home)
    ended = elsewhere(machine, "predict", "handed over", "--data", case.new, "--out", "scores.csv")
    assert ended.returncode == 0, ended.stderr
    assert ("runs code that came with it: parts/own.py (sha256" in ended.stderr) == (name == "own block")
    assert (machine / "scores.csv").read_bytes() == at_home.csv
    assert np.array_equal(load_run(machine / "handed over").predict(machine / case.new).scores, wanted)


def test_transfer_needs_the_silo_without_labels_alone(tmp_path: Path) -> None:
    train(transfer(), out=tmp_path / "run")
    run = load_run(tmp_path / "run")
    run.export_folder(tmp_path / "out")
    assert files(tmp_path / "out" / "model") == [
        "head.safetensors", "model.json", "silo2.json", "silo2.safetensors"
    ]  # fmt: skip
    patients = load_breast_cancer()
    names = patients.feature_names.tolist()
    rows = pl.DataFrame({name: patients.data[:90, i] for i, name in enumerate(names)})
    assert load_run(tmp_path / "out").predict(rows).csv == run.predict(rows).csv


@pytest.fixture(name="made")
def made_folder(tmp_path: Path) -> Path:
    """A folder with a run, its files and what was exported of it."""
    folder = tmp_path / "made"
    folder.mkdir()
    (folder / "own.py").write_text(OWN_BLOCK)
    out, _ = trained(folder, table_case(folder, "binary", HEAD | {"blocks": {"a": {"block": "own.py:Wave"}}}))
    load_run(out).export_folder(folder / "out")
    return folder


FILES = ["README.md", "manifest.json", "model/a.json", "model/a.safetensors", "model/b.json", "model/b.safetensors",
         "model/head.safetensors", "model/model.json", "parts/own.py"]  # fmt: skip


def files(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def test_what_is_in_it(made: Path) -> None:
    assert files(made / "out") == FILES
    content = {name: (made / "out" / name).read_bytes() for name in FILES}
    assert not any(str(made.parent).encode() in text for text in content.values()), "no paths of this machine"
    assert not any(b"people" in text for text in content.values()), "not even the name of a data file"
    manifest = json.loads(content["manifest.json"])
    assert manifest["trained"]["round"] == 3
    assert manifest["trained"]["rows"] == {"training": 120, "test": 30}
    assert manifest["trained"]["own_files"].keys() == {"parts/own.py"}
    assert manifest["trained"]["versions"].keys() == {"crosshatch", "torch", "numpy", "python"}
    assert manifest["trained"]["figures"]["auc"] == json.loads((made / "run/summary.json").read_text())["final"]["auc"]
    readme = content["README.md"].decode()
    for words in ("crosshatch predict", "| `age` | number |", "`007`, `green`, `red`", "| `auc` |", "`parts/own.py`"):
        assert words in readme
    load_run(made / "out").export_folder(made / "again")
    assert {name: (made / "again" / name).read_bytes() for name in FILES} == content, "exported once more it is equal"


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("damage", ["changed", "cut", "gone"])
def test_damage_is_refused(made: Path, command: Command, name: str, damage: str) -> None:  # noqa: F811
    file = made / "out" / name
    content = bytearray(file.read_bytes())
    if damage == "gone":
        file.unlink()
    else:
        content[len(content) // 2] ^= 0xFF
        file.write_bytes(content if damage == "changed" else content[: len(content) // 2])
    ended = command("predict", made / "out", "--data", made / "new.csv", "--out", made / "scores.csv")
    assert ended.code == 2
    errors = [line for line in ended.err.splitlines() if line.startswith("error: ")]
    assert len(errors) == 1
    assert (name if (name, damage) != ("manifest.json", "gone") else "is not a run directory") in errors[0]
    assert not (made / "scores.csv").exists()


def test_code_that_the_manifest_does_not_name_is_not_run(made: Path) -> None:
    (made / "evil.py").write_text("raise SystemExit('it ran')")
    shape = made / "out" / "model" / "a.json"
    shape.write_text(shape.read_text().replace("parts/own.py", str(made / "evil.py")))
    manifest = json.loads((made / "out" / "manifest.json").read_text())
    manifest["files"]["model/a.json"] = sha256(shape.read_bytes()).hexdigest()
    (made / "out" / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(RunError, match=r"names the code in .*evil\.py, which manifest\.json does not"):
        load_run(made / "out")


def test_whole_or_not_at_all(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    before = files(made)
    for name in ("rename", "fsync"):
        with monkeypatch.context() as patch:
            patch.setattr(os, name, fail)
            with pytest.raises(RunError, match="no space left to write"):
                load_run(made / "run").export_folder(made / "another")
        assert files(made) == before
        assert not (made / "another").exists()
    (made / "another.partial" / "another").mkdir(parents=True)  # as a process leaves it that was killed
    (made / "another.partial" / "another" / "half").write_text("")
    (made / "another").mkdir()
    load_run(made / "run").export_folder(made / "another")
    assert files(made / "another") == FILES
    assert not (made / "another.partial").exists()


def test_two_at_once(made: Path) -> None:
    with one_writer(made / "another.partial", "exporting"), ThreadPoolExecutor(1) as pool:
        second = pool.submit(load_run(made / "run").export_folder, made / "another")
        with pytest.raises(RunError, match=r"is writing .*another\.partial: process \d+ on .*exporting"):
            second.result()
    assert not (made / "another").exists()


def test_refusals(made: Path, command: Command, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    monkeypatch.chdir(made)
    before = files(made)
    for arguments, message in (
        (["--folder", "out"], "--folder out exists and is not empty: choose another one"),
        (["--folder", "new.csv"], "--folder new.csv is a file"),
        (["--folder", "no/where"], "there is no folder no, make it"),
        ([], "--folder DIR for all that crosshatch predict needs, --out FILE for a program"),
        (["--out", "m.pt2", "--silo", "a"], "--silo a is for --folder"),
        (["--folder", "x", "--silo", "c"], "--silo c is not a silo that scores need: choose one of a, b"),
        (["--folder", "x", "--round", "best"], "run has no best round"),
        (["--folder", "x", "--out", "no/m.pt2"], "there is no folder no"),
    ):
        ended = command("export", "run", *arguments)
        assert (ended.code, ended.err.count("\n"), message in ended.err) == (2, 1, True), ended.err
        assert files(made) == before
    ended = command("predict", "out")
    assert (ended.code, "out was exported, and no test rows with it: give rows by --data" in ended.err) == (2, True)
    ended = command("predict", "out", "--data", "new.csv", "--round", "last")
    assert (ended.code, "the model of one round: leave --round last out" in ended.err) == (2, True)


def test_folder_and_program_at_once(tmp_path: Path, command: Command) -> None:  # noqa: F811
    made = tmp_path / "made"
    made.mkdir()
    trained(made, table_case(made))
    ended = command("export", made / "run", "--folder", made / "x", "--out", made / "m.pt2")
    assert (ended.code, ended.err) == (0, "")
    assert f"exported into {made / 'x'}: the model of round 3; its README.md says" in ended.out
    assert (made / "m.pt2").is_file()


def test_one_silo_alone(made: Path, command: Command) -> None:  # noqa: F811
    """Its two files, what is common, the head where it holds it; and the embeddings are those of the whole model."""
    run = load_run(made / "run")
    holder = run.model.common.head
    assert holder is not None
    assert holder.holder == "a"
    rows = run.prepare(made / "new.csv")
    for j, silo in enumerate("ab"):
        ended = command("export", made / "run", "--folder", made / silo, "--silo", silo)
        assert ended.code == 0
        own = [name for name in FILES if name[6:8] not in ("a.", "b.") or name[6] == silo]
        if silo == "b":
            own = [name for name in own if name not in ("model/head.safetensors", "parts/own.py")]
        assert files(made / silo) == own
        model = made / silo / "model"
        part = read_part(model, silo, read_common(model))
        assert torch.equal(part.embed(rows.xs[j]), run.model.parts[j].embed(rows.xs[j]))
        ended = command("predict", made / silo, "--data", made / "new.csv")
        assert (ended.code, f"holds the part of '{silo}' alone" in ended.err) == (2, True)


def test_a_run_that_was_stopped(tmp_path: Path, command: Command) -> None:  # noqa: F811
    config = tmp_path / "c.toml"
    config.write_text(
        'data = {name = "wine", validation = 0.2}\nalgorithm = {name = "fedbcd"}\nrun = {rounds = 20, threads = 1}\n'
    )
    run = tmp_path / "run"
    train(read_config(config), out=run, watcher=StopAt(7))
    ended = command("export", run, "--folder", tmp_path / "last", "--round", "last")
    assert ended.code == 0
    assert ended.err == f"warning: the run of {run} had not finished yet: this is the model it left, after round 7\n"
    assert "of round 7;" in ended.out
    ended = command("export", run, "--folder", tmp_path / "best")
    assert "the best by validation_accuracy" in ended.out
    assert "had not finished when it was exported" in (tmp_path / "best" / "README.md").read_text()
    pl.DataFrame({"x": [1]}).write_csv(tmp_path / "x.csv")
    ended = command("predict", tmp_path / "last", "--data", tmp_path / "x.csv")
    assert "had not finished when it was exported: this is the model it left, after round 7\n" in ended.err
    for name in ("model", "best_model"):
        shutil.rmtree(run / name)
    ended = command("export", run, "--folder", tmp_path / "none")
    assert (ended.code, "has not finished and left no model: go on with" in ended.err) == (2, True)


def test_files_of_two_rounds_are_not_mixed(tmp_path: Path) -> None:
    for name, rounds in (("one", 2), ("other", 3)):
        (tmp_path / name).mkdir()
        trained(tmp_path / name, table_case(tmp_path / name), run={"rounds": rounds, "threads": 1})
    weights = Path("run", "model", "a.safetensors")
    shutil.copy(tmp_path / "one" / weights, tmp_path / "other" / weights)
    with pytest.raises(RunError, match=r"a\.safetensors is of round 2, and .*model\.json of round 3: if the run is"):
        load_run(tmp_path / "other" / "run")


def test_other_versions_are_told(made: Path, command: Command) -> None:  # noqa: F811
    path = made / "run" / "model" / "model.json"
    text = json.loads(path.read_text())
    text["trained"]["versions"]["torch"] = "2.6.0"
    path.write_text(json.dumps(text))
    ended = command("predict", made / "run", "--data", made / "new.csv", "--out", made / "s.csv")
    assert ended.code == 0
    assert f"note: it was trained with torch 2.6.0, this is torch {torch.__version__}: scores may" in ended.err
