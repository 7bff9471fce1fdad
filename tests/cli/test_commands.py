"""The commands, each once with good input."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from crosshatch.cli.demo import demo_configs
from crosshatch.runs.config import read_config
from tests.support.command_line import Command, environment
from tests.support.data_folder import Need

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
SHIPPED = ("quick", "breast_cancer", "own_csv")
TWO_ROUNDS = ("--set", "run.rounds=2", "--set", "evaluate.every=1", "--set", "run.threads=1")


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.toml")), ids=lambda path: path.stem)
def test_every_example_is_valid(path: Path) -> None:
    config = read_config(path)
    assert config.name == path.stem
    assert config.run.rounds >= 1


def test_there_are_examples() -> None:
    assert {path.stem for path in EXAMPLES.glob("*.toml")} >= {
        "quick", "breast_cancer", "own_csv", "credit_default", "mnist_halves", "physionet", "superconductivity",
    }  # fmt: skip


@pytest.mark.parametrize("name", SHIPPED)
def test_examples_with_their_data_train(command: Command, name: str) -> None:
    ended = command("train", EXAMPLES / f"{name}.toml", *TWO_ROUNDS)
    assert ended.code == 0, ended.err
    lines = ended.out.splitlines()
    assert [line.split("  ")[0] for line in lines if line.startswith("round")] == [
        "round 0/2",
        "round 1/2",
        "round 2/2",
    ]
    assert lines[-1].startswith("finished after round 2: train_loss")
    run = Path("runs") / name
    assert {entry.name for entry in run.iterdir()} == {
        "config.toml", "metrics.jsonl", "summary.json", "model", "checkpoint", "report.html", "fingerprint.json",
    }  # fmt: skip


@pytest.mark.parametrize("name", ["credit_default", "superconductivity"])
def test_examples_of_the_data_folder_train(command: Command, need: Need, name: str) -> None:
    ended = command("train", EXAMPLES / f"{name}.toml", *TWO_ROUNDS, "--data", need(name))
    assert ended.code == 0, ended.err


def test_own_files_say_what_was_dropped(command: Command) -> None:
    ended = command("train", EXAMPLES / "own_csv.toml", *TWO_ROUNDS)
    assert "note: 7 of 231 rows of bank.csv dropped" in ended.out


def test_the_written_config_runs_from_elsewhere(command: Command, tmp_path: Path) -> None:
    command("train", EXAMPLES / "own_csv.toml", *TWO_ROUNDS, "--out", "first")
    moved = tmp_path / "moved.toml"
    moved.write_bytes(Path("first/config.toml").read_bytes())
    assert command("train", moved, "--out", "second").code == 0
    first, second = (Path(name, "model", "bank.safetensors").read_bytes() for name in ("first", "second"))
    assert first == second


def test_quiet(command: Command) -> None:
    ended = command("train", EXAMPLES / "quick.toml", *TWO_ROUNDS, "--quiet")
    assert (ended.code, ended.out, ended.err) == (0, "", "")


def test_a_run_is_called_like_its_folder_unless_it_has_a_name(command: Command) -> None:
    command("train", EXAMPLES / "quick.toml", *TWO_ROUNDS, "--out", "runs/q1")
    command("train", EXAMPLES / "quick.toml", *TWO_ROUNDS, "--out", "runs/q2", "--set", "run.name=mine")
    ended = command("train", EXAMPLES / "quick.toml", *TWO_ROUNDS, "--out", "runs/.hidden")
    assert ended.code == 0, ended.err
    folders = ("q1", "q2", ".hidden")
    names = [json.loads(Path("runs", folder, "summary.json").read_text())["name"] for folder in folders]
    assert names == ["q1", "mine", "quick"]
    assert command("train", EXAMPLES / "quick.toml", *TWO_ROUNDS, "--out", "runs/q1", "--resume").code == 0
    assert command("train", "runs/q1/config.toml", "--out", "runs/q1", "--resume").code == 0


def test_resume_of_a_finished_run(command: Command) -> None:
    command("train", EXAMPLES / "quick.toml", *TWO_ROUNDS)
    ended = command("train", EXAMPLES / "quick.toml", *TWO_ROUNDS, "--resume")
    assert ended.code == 0
    assert "has finished already, after round 2" in ended.out
    assert "no earlier run" not in ended.out


def test_resume_without_an_earlier_run_says_so(command: Command) -> None:
    ended = command("train", EXAMPLES / "quick.toml", *TWO_ROUNDS, "--resume")
    assert ended.code == 0, ended.err
    assert ended.out.startswith("no earlier run in runs/quick: this one starts at round 0\nquick: ")
    quiet = command("train", EXAMPLES / "quick.toml", *TWO_ROUNDS, "--resume", "--quiet", "--out", "other")
    assert (quiet.code, quiet.out) == (0, "")


def test_compare_and_report(command: Command) -> None:
    for name in ("one", "two"):
        command("train", EXAMPLES / "breast_cancer.toml", *TWO_ROUNDS, "--out", name)
    ended = command("compare", "one", "two", "--target", "auc=0.9", "--html", "curves.html")
    assert ended.code == 0
    assert "To reach AUC of at least 0.9" in ended.out
    assert Path("curves.html").stat().st_size > 10_000
    twice = command("compare", "one", "one")
    assert "one (1)" in twice.out
    assert "one (2)" in twice.out
    for refused in (command("report", "one", "--out", "two"), command("compare", "one", "--html", "two")):
        assert refused.code == 2
        assert refused.err == "error: two is a folder, the page is a file: name it, for example two/report.html\n"
    assert command("report", "one").out == "one/report.html\n"
    assert command("report", "one", "two").out == "report.html\n"
    assert command("report", "one", "two", "--out", "page.html", "--target", "auc=0.8").code == 0
    assert all("Who took part" in Path(page).read_text(encoding="utf-8") for page in ("page.html", "curves.html"))


def test_runs_of_several_seeds_are_shown_as_one(command: Command) -> None:
    for seed in range(3):
        command("train", EXAMPLES / "quick.toml", *TWO_ROUNDS, "--set", f"run.seed={seed}", "--out", f"quick-{seed}")
    folders = [f"quick-{seed}" for seed in range(3)]
    ended = command("compare", *folders, "--html", "curves.html")
    assert ended.code == 0, ended.err
    assert "quick (3 seeds)" in ended.out
    assert "\N{PLUS-MINUS SIGN}" in ended.out
    assert command("report", *folders).out == "report.html\n"
    for page in ("curves.html", "report.html"):
        assert "quick (3 seeds)" in Path(page).read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["compare", "absent"], "absent is not a directory"),
        (["report", "absent"], "absent is not a directory"),
        (["datasets", "--data", "absent"], "no data folder absent"),
    ],
)
def test_refusals(command: Command, arguments: list[str], words: str) -> None:
    ended = command(*arguments)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith(f"error: {words}")
    assert ended.err.count("\n") == 1


def test_an_unknown_target(command: Command) -> None:
    command("train", EXAMPLES / "quick.toml", *TWO_ROUNDS)
    ended = command("compare", "runs/quick", "--target", "f1=0.5")
    assert ended.code == 2
    assert "has no metric 'f1'" in ended.err


def test_datasets(command: Command, tmp_path: Path) -> None:
    ended = command("datasets")
    assert ended.code == 0
    for words in ("breast_cancer", "credit_default", "CC BY 4.0", "No data folder was given", "download"):
        assert words in ended.out
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "arcene.npz").write_bytes(b"no archive")
    ended = command("datasets", "--data", tmp_path / "data")
    assert "0 of 1" in " ".join(ended.out.split())


def test_a_value_of_the_grid_that_is_refused_is_named_as_one(command: Command) -> None:
    ended = command("sweep", EXAMPLES / "quick.toml", "--grid", "algorithm.step_size=-1,-2")
    assert ended.code == 2
    assert "--grid algorithm.step_size=-1: algorithm.step_size: a step size must be" in ended.err
    ended = command("sweep", EXAMPLES / "quick.toml", "--grid", "algorithm.step_size=1,2", "--set", "run.rounds=0")
    assert ended.err.startswith("error: --set run.rounds=0: run.rounds = 0: must be at least 1")


def test_a_narrow_terminal_breaks_no_word(command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    (tmp_path / "epileptic_seizure.npz").write_bytes(b"no archive")
    ended = command("datasets", "--data", tmp_path)
    assert "│ epileptic_seizure │" in ended.out
    assert "│ superconductivity │" in ended.out
    grid = ("algorithm.name=fedbcd", "algorithm.local_steps=2", "algorithm.step_size=0.1", "model.block=mlp,cnn")
    ended = command("sweep", EXAMPLES / "quick.toml", *(part for one in grid for part in ("--grid", one)), *TWO_ROUNDS,
                    "--set", "data.validation=0.2", "--out", "sweep")  # fmt: skip
    table = [line for line in ended.out.splitlines() if line[:1] in ("┃", "│")]
    assert {"local_steps", "step_size", "remarks", "validation"} <= set(" ".join(table).split())
    assert max(map(len, table)) <= 80


def test_demo(monkeypatch: pytest.MonkeyPatch, command: Command) -> None:
    short = {
        name: tables | {"run": tables["run"] | {"rounds": 3}, "evaluate": tables["evaluate"] | {"every": 1}}
        for name, tables in demo_configs().items()
    }
    monkeypatch.setattr("crosshatch.cli.demo.demo_configs", lambda: short)
    first, second = command("demo"), command("demo")
    assert first.code == 0, first.err
    assert first.out.splitlines()[-1] == "report: crosshatch-demo/report.html"
    assert second.out.splitlines()[-1] == "report: crosshatch-demo-2/report.html"
    assert Path("crosshatch-demo/report.html").is_file()
    for name in ("central", "fedsgd", "fedbcd", "tdcd"):
        assert name in first.out
        assert json.loads(Path("crosshatch-demo", name, "summary.json").read_text())["algorithm"] == name
    Path("taken").write_text("")
    assert "the output folder taken is a file" in command("demo", "--out", "taken").err
    refused = command("demo", "--out", "crosshatch-demo")
    assert refused.code == 2
    assert "exists and is not empty" in refused.err


def test_a_live_bar_on_a_terminal(tmp_path: Path) -> None:
    pty = pytest.importorskip("pty", reason="terminals of this kind are POSIX's")
    ours, theirs = pty.openpty()
    arguments = [sys.executable, "-m", "crosshatch", "train", str(EXAMPLES / "quick.toml"), *TWO_ROUNDS]
    terminal = environment() | {"TERM": "xterm", "COLUMNS": "120"}
    with subprocess.Popen(arguments, cwd=tmp_path, stdout=theirs, stderr=theirs, env=terminal) as process:
        os.close(theirs)
        pieces = []
        with contextlib.suppress(OSError):  # how Linux says that the other end was closed
            while piece := os.read(ours, 65536):
                pieces.append(piece)
    os.close(ours)
    shown = b"".join(pieces).decode()
    assert process.returncode == 0, shown
    for words in ("round 2/2", "simulated", "finished after round 2"):
        assert words in shown
