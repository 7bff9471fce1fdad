"""Every bad input through the real command line: one line naming place and remedy, exit code 2, nothing left behind."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import command  # noqa: F401 - `command` is a fixture
from tests.support.bad_input import FILES, PEOPLE, Change, left_behind, require_refusal, write_table
from tests.support.command_line import Command, environment

CONFIG = (
    PEOPLE
    + """
[federation]
silos = [{ name = "a", columns = ["x1", "x2"] }, { name = "b", columns = ["x3"] }]
[algorithm]
name = "fedbcd"
local_steps = 2
step_size = 0.1
batch_size = 8
[run]
name = "one"
rounds = 4
threads = 1
"""
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a config and its table."""
    folder = tmp_path / "input"
    folder.mkdir()
    (folder / "good.toml").write_text(CONFIG)
    write_table(folder / "people.csv")
    return folder


def test_the_input_is_good_before_it_is_made_bad(folder: Path, command: Command) -> None:  # noqa: F811
    ended = command("train", folder / "good.toml")
    assert ended.code == 0, ended.err


NAMED = ("data.path=", "data.id=", "data.label=")  # no own file
BY_SETTING = {
    "unknown key": (["algorithm.local_step=3"], ("unknown key algorithm.local_step", "did you mean 'local_steps'?")),
    "unknown section": (["algoritm.x=3"], ("unknown section [algoritm]", "did you mean [algorithm]?")),
    "wrong type": (["run.rounds=many"], ("run.rounds = 'many'", "expected a whole number")),
    "unknown data set": ([*NAMED, "data.name=brest_cancer"], ("'brest_cancer'", "breast_cancer")),
    "a data set without a folder": ([*NAMED, "data.name=mnist"], ("'mnist'", "--data or CROSSHATCH_DATA")),
    "absent file": (["data.path=gone.csv"], ("gone.csv", "check the path")),
    "column in two silos": (["federation.silos.1.columns=['x2', 'x3']"], ("x2", "'a'", "'b'")),
    "unknown column": (["federation.silos.1.columns=['x9']"], ("x9",)),
    "no label": (["data.label="], ("label", "data.label")),
    "label column unknown": (["data.label=z"], ("'z'",)),
    "label silo unknown": (["federation.labels=c"], ("federation.labels = 'c'", "a, b")),
    "more clients than samples": (
        ["algorithm.name=tdcd", "federation.clients=100"], ("100", "clients", "samples")),
    "Q = 0": (["algorithm.local_steps=0"], ("algorithm.local_steps = 0", "at least 1")),
    "batch larger than data": (["algorithm.batch_size=1000"], ("algorithm.batch_size = 1000", "leave it out")),
    "outputs that do not fit the sum": (["model.outputs=7"], ("width 7", "model.outputs = 1", "model.fusion")),
    "a block for other samples": (["model.block=cnn"], ("silo 'a'", "'cnn'", "use linear or mlp")),
    "unknown block": (["model.block=linnear"], ("'linnear'", "linear, mlp")),
    "several clients where one is allowed": (["federation.clients=3"], ("one client per silo", "TDCD")),
    "unknown algorithm": (["algorithm.name=fedbdc"], ("'fedbdc'", "did you mean 'fedbcd'?")),
    "endless time": (["network.t_comm=1e308"], ("network.t_comm = 1e+308", "at most 1e+12")),
    "too strong a regulariser": (["model.l2=1e300"], ("l2 = 1e+300", "set model.l2 to at most 1e+30")),
    "negative step size": (["algorithm.step_size=-0.1"], ("algorithm.step_size", "positive")),
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(BY_SETTING))
def test_bad_settings(folder: Path, command: Command, name: str) -> None:  # noqa: F811
    changes, words = BY_SETTING[name]
    settings = [part for change in changes for part in ("--set", change)]
    ended = command("train", folder / "good.toml", *settings)
    require_refusal(ended.code, ended.out, ended.err, words)
    assert left_behind(Path.cwd()) == []


def _duplicate_id(rows: list[list[str]]) -> None:
    rows[3][0] = rows[2][0]


def _cell(value: str) -> Change:
    def change(rows: list[list[str]]) -> None:
        rows[7][2] = value

    return change


def _one_class(rows: list[list[str]]) -> None:
    for row in rows[1:]:
        row[4] = "1"


BY_TABLE: dict[str, tuple[Change, tuple[str, ...]]] = {
    "duplicate ids": (_duplicate_id, ("people.csv", "id '1'", "keep one row per id")),
    "NaN in features": (_cell("NaN"), ("x2",)),
    "nothing in features": (_cell(""), ("x2", "impute")),
    "infinity in features": (_cell("inf"), ("x2",)),
    "one class only": (_one_class, ("class",)),
}


@pytest.mark.parametrize("name", sorted(BY_TABLE))
def test_bad_tables(folder: Path, command: Command, name: str) -> None:  # noqa: F811
    change, words = BY_TABLE[name]
    write_table(folder / "people.csv", change)
    ended = command("train", folder / "good.toml")
    require_refusal(ended.code, ended.out, ended.err, words)
    assert left_behind(Path.cwd()) == []


def test_ids_that_do_not_overlap(folder: Path, command: Command) -> None:  # noqa: F811
    (folder / "files.toml").write_text(FILES)
    (folder / "a.csv").write_text("id,u,y\n" + "".join(f"{i},{i}.5,{i % 2}\n" for i in range(20)))
    (folder / "b.csv").write_text("id,v\n" + "".join(f"{i + 100},{i}.5\n" for i in range(20)))
    ended = command("train", folder / "files.toml")
    require_refusal(ended.code, ended.out, ended.err, ("ids do not overlap", "a.csv", "b.csv", "check the id columns"))
    assert left_behind(Path.cwd()) == []


def test_a_config_that_is_absent_or_no_toml(folder: Path, command: Command) -> None:  # noqa: F811
    ended = command("train", folder / "gone.toml")
    require_refusal(ended.code, ended.out, ended.err, ("no config file", "gone.toml"))
    (folder / "bad.toml").write_text("[data\n")
    ended = command("train", folder / "bad.toml")
    require_refusal(ended.code, ended.out, ended.err, ("bad.toml is not TOML", "line 1"))
    assert left_behind(Path.cwd()) == []


def test_an_own_block_with_the_wrong_width(folder: Path, command: Command) -> None:  # noqa: F811
    (folder / "mine.py").write_text(
        "import torch\n\n\nclass Wide(torch.nn.Module):\n    def __init__(self, input_shape):\n"
        "        super().__init__()\n        self.layer = torch.nn.Linear(input_shape[0], 3)\n\n"
        "    def forward(self, x):\n        return self.layer(x)\n"
    )
    ended = command("train", folder / "good.toml", "--set", "model.block=mine.py:Wide")
    require_refusal(ended.code, ended.out, ended.err, ("silo 'a'", "width 3", "the sum needs 1"))
    settings = ("--set", "model.block=mine.py:Wide", "--set", "model.fusion=head", "--set", "model.outputs=5")
    ended = command("train", folder / "good.toml", *settings)
    require_refusal(ended.code, ended.out, ended.err, ("the head does not take 6",))
    assert left_behind(Path.cwd()) == []


@pytest.mark.parametrize(("separator", "name"), [(";", "semicolons"), ("\t", "tabs"), ("|", "bars")])
def test_another_separator_is_said(folder: Path, command: Command, separator: str, name: str) -> None:  # noqa: F811
    path = folder / "people.csv"
    path.write_text(path.read_text().replace(",", separator))
    ended = command("check", folder / "good.toml")
    assert ended.code == 0, ended.err
    assert f"columns are separated by {name}" in " ".join(ended.out.split())


def test_a_run_that_ends_far_worse_than_it_began(folder: Path, command: Command) -> None:  # noqa: F811
    """Its losses are numbers, so it is no error: a line says what happened."""
    ended = command("train", folder / "good.toml", "--set", "algorithm.step_size=200", "--set", "run.rounds=3")
    assert ended.code == 0, ended.err
    rows = [json.loads(line) for line in Path("runs/one/metrics.jsonl").read_text().splitlines()]
    assert rows[-1]["train_loss"] > 2 * rows[0]["train_loss"]
    assert ended.err.startswith(f"warning: the training loss ended at {rows[-1]['train_loss']:.4g} and began at ")
    assert ended.err.count("\n") == 1
    assert "lower algorithm.step_size" in ended.err


def test_training_that_diverges(folder: Path, command: Command) -> None:  # noqa: F811
    settings = ("data.target=regression", "algorithm.step_size=1e6", "run.rounds=200", "evaluate.every=1000")
    ended = command("train", folder / "good.toml", *[part for s in settings for part in ("--set", s)])
    assert ended.code == 1
    (line,) = ended.err.splitlines()
    assert all(words in line for words in ("error: round ", "no longer finite", "lower algorithm.step_size"))
    assert "diverged" in json.loads(Path("runs/one/summary.json").read_text())


def test_an_existing_output_folder(folder: Path, command: Command) -> None:  # noqa: F811
    Path("runs/one").mkdir(parents=True)
    Path("runs/one/notes.txt").write_text("keep me")
    ended = command("train", folder / "good.toml")
    require_refusal(ended.code, ended.out, ended.err, ("runs/one", "not empty", "another --out", "--resume"))
    assert left_behind(Path.cwd()) == ["runs", "runs/one", "runs/one/notes.txt"]


def test_disk_full(folder: Path, tmp_path: Path) -> None:
    """No file may grow beyond 8 kB: the checkpoint of a wider model does not fit."""
    home = tmp_path / "home"
    home.mkdir()

    def small_files() -> None:
        import signal

        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # so that writing fails instead of ending the process
        resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192))

    wide = ("--set", "model.block=mlp", "--set", "model.hidden=[2000]")
    ran = subprocess.run(
        [sys.executable, "-m", "crosshatch", "train", str(folder / "good.toml"), *wide],
        cwd=home, env=environment() | {"PYTHONDONTWRITEBYTECODE": "1"}, capture_output=True, text=True, check=False,
        preexec_fn=small_files,
    )  # fmt: skip
    require_refusal(ran.returncode, ran.stdout, ran.stderr, ("no space left to write", "free some space"))
    assert left_behind(home) == []
