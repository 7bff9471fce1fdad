"""A small recipe from beginning to end: nothing is trained twice, and results do not depend on how they came about."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from crosshatch.reproduce.running.carry_out_recipes import Done
from crosshatch.reproduce.running.folder import Folder
from crosshatch.reproduce.running.keys import Keys
from crosshatch.reproduce.running.planned_runs import plan
from crosshatch.reproduce.writing.result import SCHEMA, RecipeResult, read_result, schema
from crosshatch.reproduce.writing.write import write_all
from tests.reproduce.small_recipe import RECIPE, RUNS
from tests.support.reproducing import run


def same_but_for_the_date(path: Path) -> dict[str, object]:
    told = json.loads(path.read_text(encoding="utf-8"))
    assert isinstance(told, dict)
    told["made"] = {key: value for key, value in told["made"].items() if key not in ("date", "processor_seconds")}
    return told


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Done]:
    out = tmp_path_factory.mktemp("reproduced")
    return out, run(out, RECIPE)


def test_all_files_are_written(done: tuple[Path, Done]) -> None:
    out, first = done
    result = read_result(out / "small")
    assert first.not_run == {}
    assert first.trained == len(result.runs) == len(list((out / "runs").iterdir()))
    assert result.verdict in ("holds", "does not hold")
    assert result.readings.keys() == {"own", "common"}
    assert result.made.rules_first
    assert result.made.processor_seconds > 0
    for name in ("table.csv", "figure.svg", "figure.png", "index.html"):
        assert (out / "small" / name).stat().st_size > 0, name
    assert "not there yet" in (out / "index.html").read_text(encoding="utf-8")
    page = (out / "small" / "index.html").read_text(encoding="utf-8")
    for words in ("Q = 5 takes fewer rounds", "The search for step sizes", "What differs", result.made.command):
        assert words in page


def test_the_search_is_told_whole(done: tuple[Path, Done]) -> None:
    result = read_result(done[0] / "small")
    for one in result.search:
        tried = [trial.value for trial in one.tried]
        assert one.own in tried
        assert len(tried) <= 3  # widened once at most
        assert one.at_edge == (one.own in (tried[0], tried[-1]))


def test_again_trains_nothing_and_writes_the_same(done: tuple[Path, Done]) -> None:
    out, _ = done
    before = same_but_for_the_date(out / "small" / "result.json")
    figure = (out / "small" / "figure.svg").read_bytes()
    other_order = replace(RUNS, methods=RUNS.methods[::-1], search=replace(RUNS.search, values=(0.003, 0.001)))  # type: ignore[type-var]
    assert run(out, replace(RECIPE, id="other", sets=(other_order,)), RECIPE).trained == 0
    assert same_but_for_the_date(out / "small" / "result.json") == before
    assert (out / "small" / "figure.svg").read_bytes() == figure


def test_a_recipe_that_reads_what_another_has_run_says_at_which_commit_that_began(
    done: tuple[Path, Done], tmp_path: Path
) -> None:
    out = shutil.copytree(done[0], tmp_path / "out")
    assert run(out, replace(RECIPE, id="twin")).trained == 0
    first, twin = (read_result(out / name).made for name in ("small", "twin"))
    assert twin.began_at_commit == first.began_at_commit != ""


def test_what_was_cut_off_is_finished(done: tuple[Path, Done], tmp_path: Path) -> None:
    out, _ = done
    for name in sorted(path.name for path in (out / "runs").iterdir())[::2]:  # as after a kill: half of the runs
        target = tmp_path / "runs" / name
        target.mkdir(parents=True)
        for file in (out / "runs" / name).rglob("*"):
            if file.is_file():
                copy = target / file.relative_to(out / "runs" / name)
                copy.parent.mkdir(parents=True, exist_ok=True)
                copy.write_bytes(file.read_bytes())
    rest = run(tmp_path, RECIPE).trained
    assert 0 < rest < len(list((out / "runs").iterdir()))
    ours, theirs = (same_but_for_the_date(where / "small" / "result.json") for where in (tmp_path, out))
    assert ours["rows"] == theirs["rows"]
    assert (tmp_path / "small" / "figure.svg").read_bytes() == (out / "small" / "figure.svg").read_bytes()


def test_a_page_of_half_of_it(done: tuple[Path, Done], tmp_path: Path) -> None:
    del done
    result = write_all((RECIPE,), Folder(tmp_path), "quick", None, {}, {})[0]
    assert (result.verdict, result.why) == ("not run", "12 of 12 runs are missing")
    assert "There is no figure yet" in (tmp_path / "small" / "index.html").read_text(encoding="utf-8")


def test_absent_data_name_the_file(tmp_path: Path) -> None:
    absent = replace(RECIPE, sets=(replace(RUNS, data="mnist"),))
    assert "data absent: no file" in run(tmp_path, absent, data=tmp_path).not_run["small"]
    assert "mnist.npz" in run(tmp_path, absent, data=tmp_path).not_run["small"]
    assert (
        "data absent: no file mnist.npz: data 'mnist' is read from a data folder"
        in run(tmp_path, absent).not_run["small"]
    )


def test_the_index_is_over_all(tmp_path: Path) -> None:
    places = {name: ("Somebody", f"no {name}") for name in ("small", "other", "third")}
    for name in ("small", "other"):
        write_all((replace(RECIPE, id=name),), Folder(tmp_path), "quick", None, {}, places)
    index = (tmp_path / "index.html").read_text(encoding="utf-8")
    told = [index.index(words) for words in ('href="small/index.html"', 'href="other/index.html"', "no third")]
    assert told == sorted(told)
    assert index.count("12 of 12 runs are missing") == 2


def test_too_long_is_not_run(tmp_path: Path) -> None:
    slow = replace(RECIPE, minutes=1e-6)
    assert run(tmp_path, slow).not_run["small"].startswith("time (")
    assert read_result(tmp_path / "small").verdict == "not run"


def test_one_byte_of_the_data_makes_another_run(tmp_path: Path) -> None:
    x, y = np.arange(40.0).reshape(20, 2), np.tile([0, 1], 10)
    np.savez(tmp_path / "mine.npz", x=x, y=y)
    runs = replace(RUNS, config=RUNS.config.replace("breast_cancer", "mine"))
    first = plan(runs, runs.methods[0], 0.1, "quick", Keys(tmp_path))
    assert [one.key for one in plan(runs, runs.methods[0], 0.1, "quick", Keys(tmp_path))] == [one.key for one in first]
    np.savez(tmp_path / "mine.npz", x=x + np.eye(20, 2) * 1e-3, y=y)
    other = plan(runs, runs.methods[0], 0.1, "quick", Keys(tmp_path))
    assert {one.key for one in other} & {one.key for one in first} == set()


def test_name_and_threads_play_no_part() -> None:
    keys = Keys(None)
    config = plan(RUNS, RUNS.methods[0], 0.1, "quick", keys)[0].config
    other = replace(config, run=replace(config.run, name="another", threads=7))
    assert keys.of(config) == keys.of(other)
    assert keys.of(config) != keys.of(replace(config, run=replace(config.run, seed=99)))


def test_a_run_that_failed_is_tried_again(tmp_path: Path) -> None:
    broken = replace(RECIPE, sets=(replace(RUNS, config=RUNS.config.replace("batch_size = 32", "batch_size = 99999")),))
    why = run(tmp_path, broken).not_run["small"]
    assert "runs failed; the first" in why
    assert "99999" in why
    assert run(tmp_path, broken).not_run["small"] == why  # asked for again, and told again


def test_the_schema_is_that_of_results(done: tuple[Path, Done]) -> None:
    assert json.loads(SCHEMA.read_text(encoding="utf-8")) == schema()
    told = json.loads((done[0] / "small" / "result.json").read_text(encoding="utf-8"))
    assert set(told) == set(RecipeResult.__dataclass_fields__)
    jsonschema = pytest.importorskip("jsonschema")
    jsonschema.validate(told, schema())


def test_fresh_trains_all_of_it_again(tmp_path: Path) -> None:
    one = replace(RECIPE, sets=(replace(RUNS, search=replace(RUNS.search, values=(0.003,), widen=0)),))  # type: ignore[type-var]
    assert run(tmp_path, one).trained == 6
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "runs").glob("*/summary.json")}
    assert run(tmp_path, one).trained == 0
    assert run(tmp_path, one, fresh=True).trained == 6
    assert all(path.stat().st_mtime_ns > written for path, written in before.items())


READ = """
import sys
sys.path.insert(0, sys.argv[1])
import json
import shutil
import subprocess
from importlib.resources import files
import crosshatch
import jsonschema
from crosshatch.reproduce.writing.result import read_result
assert crosshatch.__file__.startswith(sys.argv[1]), crosshatch.__file__
found = (files("crosshatch") / "reproduce/writing/result.schema.json").read_text()
jsonschema.validate(json.load(open(sys.argv[2])), json.loads(found))
print(read_result(sys.argv[2]).id)
"""


@pytest.mark.slow
def test_the_installed_package_alone_reads_a_result(done: tuple[Path, Done], tmp_path: Path) -> None:
    home, root = tmp_path / "source", Path(__file__).parents[2]
    shutil.copytree(root / "src", home / "src", ignore=shutil.ignore_patterns("*.egg-info", "__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(root / name, home / name)
    pip = (sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation", "--target")
    subprocess.run([*pip, str(tmp_path / "installed"), str(home)], check=True, timeout=300)
    shutil.rmtree(home)
    words = [sys.executable, "-I", "-c", READ, str(tmp_path / "installed"), str(done[0] / "small" / "result.json")]
    told = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=True, timeout=120)
    assert told.stdout == "small\n"
