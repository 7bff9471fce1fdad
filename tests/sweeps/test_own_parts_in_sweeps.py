"""A sweep with a user's own parts: the same as with built-in ones that do the same, wherever it is started."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

import crosshatch
from crosshatch.errors import RunError
from crosshatch.runs.config import read_config
from crosshatch.runs.files import csv_text
from crosshatch.runs.train import train
from crosshatch.sweeps.jobs import Job
from crosshatch.sweeps.table import table_rows
from tests.runs.own_parts import SOURCE
from tests.support.sweep_executors import CONFIG, Bench, Here

EXAMPLE = Path(__file__).parents[2] / "docs" / "howto" / "own-parts.md"
BROKEN = '''
@dataclass(frozen=True)
class Broken(Mine):
    """Prints, and fails in its second round."""

    def run_round(self, fed, blocks, r):
        print("round", r)
        if r == 1:
            raise ValueError("no\\nmore")
        return super().run_round(fed, blocks, r)
'''
NONE: tuple[str, ...] = ()


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    folder = tmp_path / "conf"
    folder.mkdir()
    (folder / "mine.py").write_text(SOURCE + BROKEN)
    bench = Bench(folder)
    bench.config.write_text(CONFIG.replace("local_steps = 2", "local_steps = 3"))
    return bench


@pytest.mark.parametrize(
    ("grid", "changes", "plain"),
    [
        ("algorithm.name=mine.py:Mine,fedbcd", NONE, NONE),
        ("model.loss=mine.py:Plain,cross_entropy", NONE, NONE),
        ("codecs.share=mine.py:Rounded(digits=12),half", NONE, NONE),
        (
            'algorithm.step_size={kind = "mine.py:Falling", start = 0.1},{kind = "inverse_sqrt", value = 0.1}',
            NONE,
            NONE,
        ),
        ("algorithm.step_size=0.01,0.3", ("model.block=mine.py:Net",), NONE),
        (
            "algorithm.step_size=0.01,0.3",
            ('evaluate.metrics=["accuracy", "mine.py:hits"]',),
            ('evaluate.metrics=["accuracy"]',),
        ),
    ],
)
def test_every_kind(
    bench: Bench,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    grid: str,
    changes: tuple[str, ...],
    plain: tuple[str, ...],
) -> None:
    """Against a run by itself, and where both points do the same, against each other."""
    monkeypatch.chdir(tmp_path)
    sweep = bench.read(grid, changes=changes)
    outcome = bench.run(sweep)
    assert [result.why for result in outcome.results] == ["", ""]
    first, second = (final(bench, result.point.name) for result in outcome.results)
    if grid.startswith("algorithm.step_size=0.01"):
        assert first != second
    else:
        assert first == pytest.approx(second, rel=1e-6)  # the built-in loss computes in another order
    bench.out.joinpath("chosen.toml").write_text(sweep.chosen_text(sweep.points[0], outcome.choice))
    trained = train(read_config(bench.out / "chosen.toml", ["run.threads=1"]), out=tmp_path / "again")
    assert trained.summary["final"] == first
    if plain:  # the metric changes nothing of the training
        other = Bench(tmp_path)
        other.config.write_text(bench.config.read_text())
        built_in = other.run(other.read(grid, changes=plain))
        rows = [[result.rows[0]["accuracy"] for result in one.results] for one in (outcome, built_in)]
        assert rows[0] == rows[1]


def final(bench: Bench, point: str) -> dict[str, float]:
    path = bench.out / "runs" / f"{point},seed=4" / "summary.json"
    found: dict[str, float] = json.loads(path.read_text())["final"]
    return found


@pytest.mark.parametrize(("metric", "best"), [("hits", 0.3), ("misses", 0.3)])
def test_own_metrics_choose_in_their_own_direction(bench: Bench, metric: str, best: float) -> None:
    changes = [
        'evaluate.metrics=["loss", "mine.py:hits", "mine.py:misses"]',
        "evaluate.higher_is_better={misses = false}",
    ]
    grid = "algorithm.step_size=0.0001,0.3"
    named = bench.run(bench.read(grid, changes=changes, choose=f"last validation {metric.upper()}"))
    left_out = Bench(bench.config.parent)
    left_out.out = bench.out.with_name("by")
    left_out.config.write_text(CONFIG)
    unnamed = left_out.run(left_out.read(grid, changes=[*changes, f"evaluate.best_by={metric}"]))
    for outcome in (named, unnamed):
        assert outcome.choice.metric == f"validation_{metric}"
        assert outcome.best is not None
        assert outcome.best.point.values == (str(best),)


def test_files_of_one_name(bench: Bench, tmp_path: Path) -> None:
    """From two folders: each point has its own."""
    other = tmp_path / "other"
    other.mkdir()
    (other / "mine.py").write_text(SOURCE.replace("step_size: float = 0.1", "step_size: float = 0.01"))
    bench.config.write_text(CONFIG.replace("step_size = 0.1\n", ""))
    sweep = bench.read(f"algorithm.name=mine.py:Mine,{other}/mine.py:Mine")
    assert [point.name for point in sweep.points] == ["name=mine.py_Mine,1", "name=mine.py_Mine,2"]
    outcome = bench.run(sweep)
    assert [result.rows[0]["round"] > 0 for result in outcome.results] == [True, True]
    losses = [result.rows[0]["train_loss"] for result in outcome.results]
    assert losses[0] < losses[1]
    assert sorted(path.name for path in (bench.out / "parts").iterdir()) == ["mine-2.py", "mine.py"]


def test_a_changed_file_is_refused(bench: Bench) -> None:
    grid = "algorithm.name=mine.py:Mine,fedbcd"
    bench.run(bench.read(grid))
    again = Here()
    bench.run(bench.read(grid), again)
    assert again.ran == []
    file = bench.config.with_name("mine.py")
    file.write_text(SOURCE + "\n# another day\n")
    with pytest.raises(
        RunError, match=r"mine\.py was changed since the sweep in .*: undo that \(.*parts/mine\.py is how"
    ):
        bench.run(bench.read(grid))


def test_a_run_that_fails_blames_the_users_file(bench: Bench) -> None:
    sweep = bench.read(
        "algorithm.name=mine.py:Broken,fedbcd,mine.py:Gone,gone.py:Mine", "model.block=linear,gone.py:Net"
    )
    outcome = bench.run(sweep)
    broken, _, plain, *_ = outcome.results
    assert broken.remark == "failed 1 of 1"
    line = (SOURCE + BROKEN).splitlines().index('            raise ValueError("no\\nmore")') + 1
    place = f"{bench.config.with_name('mine.py')}, line {line}"
    assert broken.why.startswith(f"the code in {place} failed with ValueError: no more: correct it there"), broken.why
    assert plain is outcome.best
    assert [result.point.config is None for result in outcome.results] == [False, True, False, *[True] * 5]
    assert len(outcome.failed) == 7
    assert csv_text(table_rows(sweep, outcome)).count("cannot be read (No such file or directory)") == 2
    assert "has no class 'Gone'" in outcome.results[4].why


def test_the_example_of_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In processes, from another folder, stopped points included; then once more, which repeats nothing."""
    folder = tmp_path / "conf"
    folder.mkdir()
    text = EXAMPLE.read_text(encoding="utf-8")
    for name in ("mine.py", "mine.toml"):
        block = text.split(f"<!-- file: {name} -->\n")[1].split("```")[1]
        (folder / name).write_text(block.partition("\n")[2])
    monkeypatch.chdir(tmp_path)
    asked: dict[str, Any] = {
        "changes": ["data.validation=0.2", "run.rounds=4", "algorithm.shrink="],
        "choose": "best validation top_tenth", "jobs": 2,
    }  # fmt: skip
    grid = {"algorithm.name": ["mine.py:Careful", "fedbcd"], "codecs.share": ["ef(mine.py:Signs)", "half"]}
    swept = crosshatch.sweep("conf/mine.toml", grid, out="out", **asked)
    assert swept.failed == {}
    assert swept.table["finished"].to_list() == [1, 1, 1, 1]
    files = {path: path.stat().st_mtime_ns for path in Path("out").glob("runs/*/summary.json")}
    again = crosshatch.sweep("conf/mine.toml", grid, out="out", **asked)
    assert again.values == swept.values
    assert files == {path: path.stat().st_mtime_ns for path in Path("out").glob("runs/*/summary.json")}
    monkeypatch.chdir(folder)  # and what was chosen trains from anywhere
    assert train(read_config(tmp_path / "out" / "chosen.toml", ["run.threads=1"]), out=tmp_path / "one").finished


def test_python_is_warned_of_failures(bench: Bench, tmp_path: Path) -> None:
    grid = {"algorithm.name": ["mine.py:Broken", "fedbcd"]}
    with pytest.warns(UserWarning, match=r"1 of 2 points failed: name=mine\.py_Broken \(failed 1 of 1: the code in"):
        swept = crosshatch.sweep(bench.config, grid, out=tmp_path / "out", jobs=1)
    assert swept.values == {"algorithm.name": "fedbcd"}
    printed = tmp_path / "out" / "printed" / "name=mine.py_Broken,seed=4.txt"
    assert printed.read_text() == "round 0\nround 1\n"
    assert str(printed) in swept.failed["name=mine.py_Broken"]
    result = json.loads((tmp_path / "out" / "result.json").read_text())
    assert (result["chosen"], list(result["failed"])) == ("name=fedbcd", ["name=mine.py_Broken"])
    assert "Failed: name=mine.py_Broken, the code in" in (tmp_path / "out" / "report.html").read_text()
    assert (tmp_path / "out" / "chosen.toml").read_text().startswith("# 1 of 2 points failed: name=mine.py_Broken ")


@dataclass
class FakeRay:
    """As much of Ray as the executor uses; tasks run here, on jobs that have travelled as bytes."""

    exceptions: Any = field(default_factory=lambda: SimpleNamespace(RayError=RuntimeError))
    results: dict[int, Callable[[], object]] = field(default_factory=dict)

    def init(self, *_: object, **__: object) -> None:
        return None

    def shutdown(self) -> None:
        return None

    def remote(self, **_: object) -> Callable[[Callable[[Job], object]], object]:
        def task(function: Callable[[Job], object]) -> object:
            def call(job: Job) -> int:
                sent = msgspec.msgpack.decode(msgspec.msgpack.encode(job), type=Job)
                self.results[len(self.results)] = lambda: function(sent)
                return len(self.results) - 1

            return SimpleNamespace(remote=call)

        return task

    def wait(self, references: list[int], timeout: float) -> tuple[list[int], list[int]]:
        assert timeout > 0
        return references[:1], references[1:]

    def get(self, reference: int) -> object:
        try:
            return self.results[reference]()
        except ZeroDivisionError as error:
            raise RuntimeError(f"Traceback:\n  many lines\nZeroDivisionError: {error}") from None


@pytest.mark.usefixtures("bench")
def test_on_ray(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", FakeRay())
    monkeypatch.chdir(tmp_path)
    grid = {"algorithm.name": ["mine.py:Mine", "fedbcd"]}
    swept = crosshatch.sweep("conf/small.toml", grid, out="out", ray="auto")
    assert swept.failed == {}
    ours, theirs = swept.table.drop("point", "algorithm.name", "chosen").rows()
    assert ours == theirs

    def divide(*_: object, **__: object) -> None:
        raise ZeroDivisionError("division by zero")

    monkeypatch.setattr("crosshatch.runs.train.train", divide)
    with pytest.raises(
        crosshatch.CrosshatchError, match=r"failed: on the cluster \(ZeroDivisionError: division by zero"
    ):
        crosshatch.sweep("conf/small.toml", grid, out="other", ray="auto")
