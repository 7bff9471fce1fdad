"""How a study is carried out: what is handed out when, and what happens where something of it fails."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from crosshatch.errors import RunError
from crosshatch.runs.stopping import Stop
from crosshatch.studies.study_result import ALL_COLUMNS, StudyResult, verdict
from crosshatch.studies.whole_study import StudyRequest, read_study, run_study
from crosshatch.sweeps.course import SweepListener
from crosshatch.sweeps.jobs import Ended, Event, WorkItem
from tests.runs.own_parts import SOURCE
from tests.support.small_studies import Here, study_here, write_config, write_rows


class OneLast(Here):
    """Holds one method back as long as another has anything to run."""

    def __init__(self, last: str) -> None:
        super().__init__()
        self.last = last

    def events(self) -> Iterator[Event | None]:
        while self._waiting:
            others = [job for job in self._waiting if self.last not in job.name]
            chosen = others[0] if others else self._waiting[0]
            self._waiting.remove(chosen)
            self._waiting.appendleft(chosen)
            yield next(iter(super().events()))


class WithoutTrees(Here):
    """Its process breaks down where trees are grown."""

    def events(self) -> Iterator[Event | None]:
        while self._waiting:
            if self._waiting[0].name == ALL_COLUMNS:
                work: WorkItem = self._waiting.popleft()
                yield work, work.broken("its process was ended by signal 9")
            else:
                yield next(iter(super().events()))


def run(folder: Path, executor: Here, *, seeds: str = "2") -> StudyResult:
    write_rows(folder / "rows.csv", n=200, seed=1, alone=0.7, joint=0.9)
    asked = read_study(write_config(folder), [], seeds=seeds, steps=("0.3", "1"), folder=None)
    result = run_study(asked, folder / "study", None, executor=executor, listener=SweepListener(), stop=Stop())
    assert result is not None
    return result


def test_no_method_waits_for_another(tmp_path: Path) -> None:
    """All seeds of the others have run before the first step size of the one that is held back."""
    executor = OneLast("method=central")
    result = run(tmp_path, executor)
    first = next(at for at, name in enumerate(executor.ran) if "method=central" in name)
    assert not any("method=central" not in name for name in executor.ran[first:])
    assert all(len(made.runs) == 2 for made in result.made)
    # and the order changes nothing
    (tmp_path / "other").mkdir()
    other = run(tmp_path / "other", Here())
    for name in ("table.csv", "scores.csv", "result.json"):
        assert (tmp_path / "study" / name).read_bytes() == (tmp_path / "other/study" / name).read_bytes(), name
    assert verdict(other) == verdict(result)


def test_no_run_is_handed_out_twice(tmp_path: Path) -> None:
    executor = Here()
    run(tmp_path, executor)
    assert len(set(executor.ran)) == len(executor.ran)
    assert executor.ran[:3] == [ALL_COLUMNS, "boosted trees, bank alone", "boosted trees, insurer alone"]


def test_a_yardstick_that_fails_is_missed_and_nothing_else(tmp_path: Path) -> None:
    result = run(tmp_path, WithoutTrees(), seeds="1")
    assert ALL_COLUMNS not in result.names
    assert "boosted trees, bank alone" in result.names
    assert f"{ALL_COLUMNS} failed: its process was ended by signal 9." in verdict(result).uncertain
    # and it is grown when the study is started again
    assert ALL_COLUMNS in run(tmp_path, Here(), seeds="1").names


def test_a_step_size_is_chosen_with_the_first_seed_and_the_page_says_so(tmp_path: Path) -> None:
    result = run(tmp_path, Here())
    assert "Step sizes were chosen with the first seed" in (tmp_path / "study/report.html").read_text()
    assert "first seed" not in verdict(replace(result, seeds=1)).how


def test_own_parts_are_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From another folder than that of the config; a file that has changed since is refused."""
    home = tmp_path / "home"
    home.mkdir()
    write_rows(home / "rows.csv", n=200, seed=1, alone=0.7, joint=0.9)
    (home / "mine.py").write_text(SOURCE)
    config = write_config(home)
    config.write_text(config.read_text().replace('block = "linear"', 'block = "mine.py:Net"'))
    monkeypatch.chdir(tmp_path)
    found = study_here(config, tmp_path / "study")
    assert (tmp_path / "study/parts/mine.py").read_text() == SOURCE
    assert np.isfinite(found.judged.values["central"]["auc"]).all()
    assert json.loads((tmp_path / "study/study.json").read_text())["parts"].keys() == {"mine.py"}
    (home / "mine.py").write_text(SOURCE + "\n")
    with pytest.raises(RunError, match="was changed since the study"):
        study_here(config, tmp_path / "study")


def test_a_study_that_is_stopped_asks_for_nothing_more(tmp_path: Path) -> None:
    write_rows(tmp_path / "rows.csv", n=200, seed=1, alone=0.7, joint=0.9)
    asked = read_study(write_config(tmp_path), [], seeds="2", steps=("0.3", "1"), folder=None)
    executor, stop = Here(), Stop()

    class AskToStop(SweepListener):
        def ended(self, job: WorkItem, ended: Ended) -> None:  # noqa: ARG002 - as a listener has it
            if len(executor.ran) == 5:
                stop.asked = True

    assert run_study(asked, tmp_path / "study", None, executor=executor, listener=AskToStop(), stop=stop) is None
    assert len(executor.ran) == 5
    again = Here()
    run_study(asked, tmp_path / "study", None, executor=again, listener=SweepListener(), stop=Stop())
    assert not set(executor.ran) & set(again.ran)


def test_other_rows_under_the_same_name_are_refused(tmp_path: Path) -> None:
    """Before anything goes on, and where they changed while runs were under way."""
    run(tmp_path, Here())
    rows, config, out = tmp_path / "rows.csv", tmp_path / "made.toml", tmp_path / "study"
    before = rows.read_text()
    lines = before.splitlines(keepends=True)
    rows.write_text("".join(lines[:5] + lines[6:]))
    with pytest.raises(RunError, match=r"the data have changed since .*study was made"):
        run_study(again(config), out, None, executor=Here(), listener=SweepListener(), stop=Stop())
    rows.write_text(before)
    shutil.rmtree(next(out.glob("runs/method=central*")))
    asked = again(config)
    rows.write_text("".join(lines[:5] + lines[6:]))
    with pytest.raises(RunError, match=r"the data have changed since .*method=central.* was made"):
        run_study(asked, out, None, executor=Here(), listener=SweepListener(), stop=Stop())


def again(config: Path) -> StudyRequest:
    return read_study(config, [], seeds="2", steps=("0.3", "1"), folder=None)
