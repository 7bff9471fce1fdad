"""What is said where a command, or the same in Python, is asked for something that makes no sense."""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path

import pytest

import crosshatch
from crosshatch.cli import main
from crosshatch.errors import ConfigError, RunError
from crosshatch.report.figures.write_figures import write_figures
from crosshatch.report.runs import read_runs
from crosshatch.runs.files import writing
from crosshatch.runs.one_writer import one_writer

SMALL = """
data = {name = "wine", validation = 0.2}
algorithm = {name = "fedbcd"}
evaluate = {every = 1}
run = {rounds = 1}
"""


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "small.toml"
    path.write_text(SMALL)
    return path


def test_resume_says_that_there_was_nothing(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["train", config.name, "--resume", "--quiet", "--out", "absent"])
    assert capsys.readouterr().err == "warning: no earlier run in absent: this one starts at round 0\n"
    with pytest.raises(SystemExit):
        main(["train", config.name, "--resume", "--out", "."])
    ended = capsys.readouterr()
    assert (ended.out, ended.err) == (
        "",
        "error: . is not a run directory (it has absent): choose another --out\n",
    )


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--from", "abc"), "--from abc: write the number of a round that all have kept, for example 20"),
        (("--from", "20"), "--from 20 goes with --resume: it is about a run that there is"),
        (("--anywhere",), "--anywhere goes with --resume: it is about a run that there is"),
        (("--resume", "--from", "20"), "--from 20: there are no processes' states in absent: launch a run first"),
    ],
)
def test_a_round_to_begin_again_at(
    arguments: tuple[str, ...], said: str, config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(["launch", config.name, "--quiet", "--out", "absent", *arguments])
    assert capsys.readouterr().err == f"error: {said}\n"


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="a folder of the system's in which nothing can be made")
def test_a_folder_that_cannot_be_made() -> None:
    with (
        pytest.raises(RunError, match="cannot make the folder /proc/absent/run: nothing can be made in /proc, choose"),
        one_writer(Path("/proc/absent/run"), "training"),
    ):
        pass


@pytest.mark.parametrize("grid", [["algorithm.name=fedbcd,tdcd"], ["algorithm.step_size=0.1"]])
def test_widen_needs_numbers(config: Path, grid: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    options = [word for one in grid for word in ("--grid", one)]
    with pytest.raises(SystemExit) as ended:
        main(["sweep", config.name, *options, "--seeds", "2", "--widen", "2"])
    assert ended.value.code == 2
    error = capsys.readouterr().err
    assert "--widen 2 goes on beyond the least or the largest of the numbers of a --grid" in error
    assert not (config.parent / "sweeps").exists()


def test_python_is_told_of_its_own_arguments(config: Path) -> None:
    names = {"algorithm.name": ["fedbcd", "tdcd"]}
    with pytest.raises(ConfigError, match=r"^widen 2 goes on beyond .* of a grid, .* leave widen out$"):
        crosshatch.sweep(config, names, out="out", widen=2)
    with pytest.raises(ConfigError, match=r"^seeds 0: at least 1"):
        crosshatch.sweep(config, names, out="out", seeds=0)
    with pytest.raises(ConfigError, match=r"^jobs 0: at least 1"):
        crosshatch.study(config, out="out", jobs=0)
    with pytest.raises(ConfigError, match=r"^changes rounds: write section\.key=value"):
        crosshatch.study(config, out="out", changes=["rounds"])


def test_figures_that_cannot_be_written_name_their_folder(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SystemExit):
        main(["train", config.name, "--quiet", "--out", "run"])

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied", "figures")

    monkeypatch.setattr(Path, "mkdir", refuse)  # whoever is root may write anywhere
    with pytest.raises(RunError) as error:
        write_figures(read_runs([Path("run")]), "figures", ["csv"])
    assert str(error.value) == (
        "cannot write figures (Permission denied): choose another folder for figures or change permissions"
    )
    with pytest.raises(RunError, match="choose another --out or change"), writing(Path("run")):
        refuse()


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("model.outputs=99999999999999999999999", "model.outputs = 99999999999999999999999: no block is that wide"),
        ("model.head_hidden=[99999999999999999999999]", "no block is that wide"),
        ("run.pieces=99999999999999999999999", "that is more than a computer counts (leave it out for 12)"),
        ("federation.silos=1000000000", "federation.silos = 1,000,000,000: at most 100,000"),
        ("federation.silos=0", "federation.silos = 0: at least 1, or leave it out for two silos"),
        ("run.wait=0.0001s", "run.wait = 0.0001s: others need a moment to answer: at least 1s"),
        ('run.name="two\\nlines"', "no line break"),
    ],
)
def test_numbers_beyond_all_measure(setting: str, said: str, config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["train", config.name, "--quiet", "--set", setting])
    assert ended.value.code == 2
    assert said in capsys.readouterr().err


def test_a_config_may_begin_with_a_mark(config: Path) -> None:
    config.write_text(SMALL, encoding="utf-8-sig")
    with pytest.raises(SystemExit) as ended:
        main(["train", config.name, "--quiet", "--out", "marked"])
    assert ended.value.code == 0


def test_targets_that_are_all_equal_in_some_draws(config: Path) -> None:
    """R2 says nothing of them; the run ends as any other, with the noise of the other draws."""
    config.write_text(SMALL.replace('{name = "wine", validation = 0.2}', '{name = "diabetes", test_fraction = 0.01}'))
    with pytest.raises(SystemExit) as ended:
        main(["train", config.name, "--quiet", "--out", "few"])
    assert ended.value.code == 0
    noise = json.loads(Path("few", "summary.json").read_text())["noise"]
    assert all(math.isfinite(value) for value in noise.values())


def test_a_damaged_file_to_predict(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["train", config.name, "--quiet", "--out", "run"])
    Path("new.parquet").write_bytes(b"PAR1 and nothing more")
    with pytest.raises(SystemExit) as ended:
        main(["predict", "run", "--data", "new.parquet", "--out", "scores.csv"])
    assert ended.value.code == 2
    assert "new.parquet is unreadable: " in capsys.readouterr().err
    assert not Path("scores.csv").exists()


def test_names_of_foreign_files_do_not_steer_the_terminal(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Neither their control characters nor what rich would take for markup."""
    rows = "".join(f"{i},{i % 7},{'yes' if i % 2 else 'no'}\n" for i in range(60))
    Path("[red]rows.csv").write_text(f"a\x1b[31m,[bold]b[/bold],label\n{rows}")
    config.write_text(
        'data = {path = "[red]rows.csv", label = "label"}\nalgorithm = {name = "fedbcd"}\nrun = {rounds = 1}'
    )
    with pytest.raises(SystemExit):
        main(["check", config.name])
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert "[red]rows.csv" in out
    assert "a\\x1b[31m" in out.replace("\n", "")
    assert "[bold]b[/bold]" in out.replace("\n", "")


def test_a_copied_run_is_told_how_to_go_on(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["train", config.name, "--quiet", "--out", "first"])
    shutil.copytree("first", "copy")
    capsys.readouterr()
    with pytest.raises(SystemExit) as ended:
        main(["train", config.name, "--quiet", "--out", "copy", "--resume", "--set", "run.rounds=2"])
    assert ended.value.code == 2
    assert "add --set run.name=first, as a copied run keeps its name" in capsys.readouterr().err
    with pytest.raises(SystemExit) as ended:
        main(["train", config.name, "--quiet", "--out", "copy", "--resume", "--set", "run.rounds=2", "--set",
              "run.name=first"])  # fmt: skip
    assert ended.value.code == 0


@pytest.mark.parametrize("command", [("report", "--out"), ("compare", "--html")])
def test_a_page_is_not_written_over_files_of_a_run(
    command: tuple[str, str], config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(["train", config.name, "--quiet", "--out", "run"])
    before = Path("run/metrics.jsonl").read_bytes()
    with pytest.raises(SystemExit) as ended:
        main([command[0], "run", command[1], "run/metrics.jsonl"])
    assert ended.value.code == 2
    said = "error: run/metrics.jsonl is there and is no page: choose another file\n"
    assert capsys.readouterr().err.endswith(said)
    assert Path("run/metrics.jsonl").read_bytes() == before
    with pytest.raises(SystemExit) as ended:
        main(["predict", "run", "--out", "run/summary.json"])
    assert ended.value.code == 2
    assert capsys.readouterr().err == "error: --out run/summary.json is a file of the run: choose another place\n"


@pytest.mark.parametrize("command", [["train", "small.toml"], ["reproduce", "run", "mtcd-fig3"], ["demo"]])
def test_a_link_that_leads_to_itself(command: list[str], config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (config.parent / "loop").symlink_to("loop")
    with pytest.raises(SystemExit) as ended:
        main([*command, "--out", "loop"])
    assert ended.value.code == 2
    assert capsys.readouterr().err == "error: loop is a link that leads to itself: choose another place\n"


def test_results_are_not_written_among_files_of_others(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["reproduce", "run", "mtcd-fig3", "--out", "."])
    assert ended.value.code == 2
    said = f"error: the output folder . has files of others ({config.name}): choose another --out\n"
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x = " + 5000 * "[", "too many brackets within each other"),
        ("x = " + 5000 * "9", "a number has too many digits"),
    ],
)
def test_configs_beyond_what_is_read(text: str, said: str, config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config.write_text(text)
    with pytest.raises(SystemExit) as ended:
        main(["check", config.name])
    assert ended.value.code == 2
    assert capsys.readouterr().err == f"error: small.toml is not TOML: {said}\n"


def test_a_config_that_was_spoilt_is_not_resumed(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["train", config.name, "--quiet", "--out", "run"])
    Path("run/config.toml").write_bytes(b"\xff\x00[1")
    with pytest.raises(SystemExit) as ended:
        main(["train", config.name, "--quiet", "--out", "run", "--resume"])
    assert ended.value.code == 2
    assert "run/config.toml is not TOML" in capsys.readouterr().err


def test_what_is_no_archive_is_not_called_a_pickle(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("mnist.npz").write_bytes(bytes(range(256)))
    with pytest.raises(SystemExit) as ended:
        main(["train", config.name, "--set", "data.name=mnist", "--data", "."])
    assert ended.value.code == 2
    assert capsys.readouterr().err == "error: mnist.npz is not a readable npz archive; get the file again\n"
