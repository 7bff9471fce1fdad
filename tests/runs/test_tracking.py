"""Trackers: what they are told, nothing twice and nothing forgotten, and what is refused; no tool is needed here."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from crosshatch.cli import main
from crosshatch.errors import ConfigError, DivergenceError, RunError
from crosshatch.runs.config import decode_config
from crosshatch.runs.run_settings import TRACKERS
from crosshatch.runs.tracking.tracker import Account, Tracker
from crosshatch.runs.tracking.trackers import require_trackers
from crosshatch.runs.train import train
from crosshatch.runs.watcher import Outcome, Watcher, Watchers
from tests.support.breaking import BreakAt
from tests.support.run_configs import TABLES, MakeConfig
from tests.support.training import StopAt, lines

OFTEN = {"every": 1}


class Archive:
    """What a tool was told, whichever process did so."""

    def __init__(self) -> None:
        self.accounts: list[Account] = []
        self.told: list[tuple[int, dict[str, float]]] = []
        self.endings: list[Outcome] = []
        self.broken_from: int | None = None

    def open(self, folder: Path, account: Account) -> Archive:
        assert folder.parts[-2:] == ("tracking", "fake")
        self.accounts.append(account)
        self._fail(-1)
        return self

    @property
    def written(self) -> dict[str, int]:
        return {name: round for round, figures in self.told for name in figures}

    def write(self, round: int, figures: Mapping[str, float]) -> None:
        self._fail(round)
        self.told.append((round, dict(figures)))

    def close(self, outcome: Outcome) -> None:
        self.endings.append(outcome)

    def _fail(self, round: int) -> None:
        if self.broken_from is not None and round >= self.broken_from:
            raise RunError("the tool is out of order")


@pytest.fixture
def archive() -> Archive:
    return Archive()


Make = Callable[..., Watcher]


@pytest.fixture
def tracking(archive: Archive) -> Make:
    """A tracker beside other watchers."""

    def make(*others: Watcher, complain: Callable[[str], None] = pytest.fail) -> Watcher:
        return Watchers([*others, Tracker("fake", archive.open, complain)])

    return make


def require_complete(archive: Archive, out: Path, *, wall: bool = True) -> None:
    """Every evaluation was told once, in order, with all its figures."""
    told = [{"round": round} | figures for round, figures in archive.told]
    if not wall:
        told = [{name: value for name, value in one.items() if name != "wall_seconds"} for one in told]
    assert told == lines(out, wall=wall)


def test_what_a_tracker_is_told(make_config: MakeConfig, out: Path, archive: Archive, tracking: Make) -> None:
    train(make_config(), out=out, watcher=tracking())
    require_complete(archive, out)
    assert {"train_loss", "auc", "bytes", "messages", "sim_seconds"} <= set(archive.told[0][1])
    (account,) = archive.accounts
    assert account.name == "small"
    assert account.config == (out / "config.toml").read_text()
    assert account.settings["algorithm.step_size"] == 0.3
    assert account.settings["federation.silos.1.name"] == "b"
    assert account.tags == {"algorithm": "tdcd", "seed": "0", "directory": "one"}
    (ending,) = archive.endings
    assert ending.state == "finished"
    assert ending.summary == json.loads((out / "summary.json").read_text())


@pytest.mark.parametrize("stop", [0, 1, 3, 5])
def test_a_resumed_run_tells_nothing_twice(
    make_config: MakeConfig, out: Path, archive: Archive, tracking: Make, stop: int
) -> None:
    config = make_config(evaluate=OFTEN)
    train(config, out=out, watcher=tracking(StopAt(stop)))
    train(config, out=out, resume=True, watcher=tracking())
    require_complete(archive, out)
    assert [ending.state for ending in archive.endings] == ["stopped", "finished"]
    assert len(archive.accounts) == 2  # opened once by each process


def test_rounds_after_the_last_checkpoint_are_told_once(
    make_config: MakeConfig, out: Path, archive: Archive, tracking: Make
) -> None:
    """They are computed again, and come out the same."""
    config = make_config(evaluate=OFTEN, run={"checkpoint_every": 6})
    with pytest.raises(ZeroDivisionError):
        train(config, out=out, watcher=tracking(BreakAt(3)))
    assert archive.endings[-1].state == "failed"
    assert archive.endings[-1].why == "by accident"
    train(config, out=out, resume=True, watcher=tracking())
    require_complete(archive, out, wall=False)


@pytest.mark.parametrize("lost", [1, 2, 4])
def test_what_a_killed_run_had_not_told_is_told_later(
    make_config: MakeConfig, out: Path, archive: Archive, tracking: Make, lost: int
) -> None:
    config = make_config(evaluate=OFTEN)
    train(config, out=out, watcher=tracking(StopAt(3)))
    del archive.told[-lost:]
    train(config, out=out, resume=True, watcher=tracking())
    require_complete(archive, out)


def test_figures_that_were_half_told_are_completed(
    make_config: MakeConfig, out: Path, archive: Archive, tracking: Make
) -> None:
    config = make_config(evaluate=OFTEN)
    train(config, out=out, watcher=tracking(StopAt(3)))
    round, figures = archive.told[-1]
    archive.told[-1] = (round, {"bytes": figures["bytes"]})
    train(config, out=out, resume=True, watcher=tracking())
    again = archive.told[4]
    assert again == (3, {name: value for name, value in figures.items() if name != "bytes"})


def test_tracking_may_begin_later(make_config: MakeConfig, out: Path, archive: Archive, tracking: Make) -> None:
    train(make_config(), out=out, watcher=StopAt(3))
    train(make_config(), out=out, resume=True, watcher=tracking())
    require_complete(archive, out)


def test_more_rounds_go_on_with_the_same(make_config: MakeConfig, out: Path, archive: Archive, tracking: Make) -> None:
    train(make_config(), out=out, watcher=tracking())
    train(make_config(run={"rounds": 10}), out=out, resume=True, watcher=tracking())
    require_complete(archive, out)
    assert [ending.summary["rounds"] for ending in archive.endings] == [6, 10]


def test_a_finished_run_that_is_resumed_tells_nobody(
    make_config: MakeConfig, out: Path, archive: Archive, tracking: Make
) -> None:
    train(make_config(), out=out)
    assert train(make_config(), out=out, resume=True, watcher=tracking()).was_finished
    assert archive.accounts == []
    assert archive.endings == []


def test_a_run_that_diverges_says_so(make_config: MakeConfig, out: Path, archive: Archive, tracking: Make) -> None:
    config = make_config(algorithm={"step_size": 1e4})
    with pytest.raises(DivergenceError):
        train(config, out=out, watcher=tracking())
    (ending,) = archive.endings
    assert ending.state == "diverged"
    assert ending.summary["diverged"]["why"] in ending.why
    require_complete(archive, out)


def test_numbers_that_are_not_finite(make_config: MakeConfig, out: Path, archive: Archive, tracking: Make) -> None:
    with pytest.raises(DivergenceError):
        train(make_config(algorithm={"step_size": 1e30}), out=out, watcher=tracking())
    assert [ending.state for ending in archive.endings] == ["diverged"]


def test_a_run_that_goes_on_diverging_is_marked_too(
    make_config: MakeConfig, out: Path, archive: Archive, tracking: Make
) -> None:
    config = make_config(algorithm={"step_size": 1e4}, run={"on_divergence": "warn"})
    train(config, out=out, watcher=tracking())
    assert archive.endings[0].state == "diverged"


def test_a_tool_that_is_no_use_ends_the_run_before_it_begins(
    make_config: MakeConfig, out: Path, archive: Archive, tracking: Make
) -> None:
    archive.broken_from = -1
    with pytest.raises(RunError, match="out of order"):
        train(make_config(), out=out, watcher=tracking())
    assert not out.parent.exists()
    archive.broken_from = None
    train(make_config(), out=out, watcher=tracking(StopAt(3)))
    before = (out / "metrics.jsonl").read_bytes()
    archive.broken_from = -1
    with pytest.raises(RunError, match="out of order"):
        train(make_config(), out=out, resume=True, watcher=tracking())
    assert (out / "metrics.jsonl").read_bytes() == before


def test_a_tool_that_fails_later_does_not_end_the_run(
    make_config: MakeConfig, out: Path, archive: Archive, tracking: Make
) -> None:
    complaints: list[str] = []
    archive.broken_from = 2

    class Repair(Watcher):
        def advance(self, round: int) -> None:
            if round == 5:
                archive.broken_from = None

    outcome = train(make_config(evaluate=OFTEN), out=out, watcher=tracking(Repair(), complain=complaints.append))
    assert outcome.finished
    assert complaints == ["the tool is out of order; the run goes on without"]
    require_complete(archive, out)  # at the end all that was missing is passed on
    assert archive.endings[0].state == "finished"


def test_a_tool_that_fails_for_good(make_config: MakeConfig, out: Path, archive: Archive, tracking: Make) -> None:
    complaints: list[str] = []
    archive.broken_from = 2
    assert train(make_config(), out=out, watcher=tracking(complain=complaints.append)).finished
    assert len(complaints) == 1
    assert [round for round, _ in archive.told] == [0]


@pytest.mark.parametrize("name", TRACKERS)
def test_a_missing_package_is_said_before_anything_starts(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, name, None)
    path = tmp_path / "wine.toml"
    path.write_text(
        f"data.name = 'wine'\nalgorithm.name = 'fedbcd'\n[run]\nrounds = 4\nthreads = 1\ntrack = ['{name}']\n"
    )
    sweep = ["sweep", str(path), "--grid", "algorithm.step_size=0.1,0.2", "--choose", "last train_loss"]
    for command in (["train", str(path)], sweep):
        with pytest.raises(SystemExit) as ended:
            main([*command, "--out", str(tmp_path / "out")])
        said = capsys.readouterr().err
        assert ended.value.code == 2
        assert "pip install -e '.[tracking]'" in said
        assert f"run.track has '{name}'" in said
        assert len(said.strip().splitlines()) == 1
        assert not (tmp_path / "out").exists()


def test_a_missing_package_in_python(make_config: MakeConfig, out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mlflow", None)
    with pytest.raises(ConfigError, match="not installed"):
        train(make_config(run={"track": ["mlflow"]}), out=out)
    assert not out.parent.exists()


@pytest.mark.skipif(find_spec("tensorboard") is not None, reason="tensorboard is installed")
def test_a_folder_of_the_name_is_not_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tensorboard").mkdir()
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ConfigError, match="not installed"):
        require_trackers(["tensorboard"])


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (["tensorbord"], "run.track has 'tensorbord', which is not a tracker: did you mean 'tensorboard'?"),
        (["MLflow"], "did you mean 'mlflow'?"),
        (["wandb"], "is not a tracker: Choose among tensorboard, mlflow"),
        (["mlflow", "mlflow"], r"run.track = \['mlflow', 'mlflow'\]: a tracker stands there twice"),
        ("mlflow", "run.track = 'mlflow': expected a list of strings"),
        ([1], r"run.track = \[1\]: expected a list of strings"),
        (True, "run.track = true: expected a list of strings"),
    ],
)
def test_bad_names(given: Any, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        decode_config(TABLES | {"run": TABLES["run"] | {"track": given}})


def test_a_watcher_that_is_none(make_config: MakeConfig, out: Path) -> None:
    stranger: Any = print
    with pytest.raises(ConfigError, match=r"inherits from crosshatch.Watcher"):
        train(make_config(), out=out, watcher=stranger)


def test_a_watcher_hears_of_every_end(make_config: MakeConfig, tmp_path: Path) -> None:
    heard: list[str] = []

    class Ear(Watcher):
        def ended(self, outcome: Outcome) -> None:
            heard.append(outcome.state)

    def several(*others: Watcher) -> Watcher:
        return Watchers([*others, Ear()])

    train(make_config(), out=tmp_path / "a", watcher=several())
    train(make_config(), out=tmp_path / "b", watcher=several(StopAt(2)))
    with pytest.raises(DivergenceError):
        train(make_config(algorithm={"step_size": 1e4}), out=tmp_path / "c", watcher=several())
    with pytest.raises(ZeroDivisionError):
        train(make_config(), out=tmp_path / "d", watcher=several(BreakAt(0)))
    assert heard == ["finished", "stopped", "diverged", "failed"]


def test_who_is_told_may_change_with_a_resumed_run(make_config: MakeConfig, out: Path) -> None:
    """The config says so, and what is computed stays the same."""
    train(make_config(), out=out, watcher=StopAt(3))
    text = (out / "config.toml").read_text()
    (out / "config.toml").write_text(text.replace("track = []", 'track = ["mlflow"]'))
    assert (out / "config.toml").read_text() != text
    assert train(make_config(), out=out, resume=True).finished
