"""Values that go together or are drawn, one beyond an edge, baselines that lack a setting, and a time limit."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from crosshatch.errors import ConfigError
from crosshatch.runs.stopping import Stop, TimedStop
from crosshatch.sweeps.course import SweepListener, carry_out
from crosshatch.sweeps.grid import Bundles
from crosshatch.sweeps.sweep import Sweep, keep_sweep, read_sweep
from crosshatch.sweeps.whole_sweep import run_whole
from crosshatch.sweeps.widen import require_edges
from tests.support.sweep_executors import Bench, Here


def read(bench: Bench, *grid: str, bundles: Bundles = Bundles(), changes: tuple[str, ...] = ()) -> Sweep:  # noqa: B008
    return read_sweep(bench.config, changes, grid, seeds="1", choose=None, halving=False, folder=None, bundles=bundles)


def test_pairs_go_together(bench: Bench) -> None:
    pairs = Bundles(["algorithm.local_steps=1,5", "algorithm.step_size=0.3,0.1"])
    sweep = read(bench, "algorithm.batch_size=16,32", bundles=pairs)
    assert [point.values for point in sweep.points] == [
        ("16", "1", "0.3"), ("16", "5", "0.1"), ("32", "1", "0.3"), ("32", "5", "0.1"),
    ]  # fmt: skip
    assert sweep.points[0].name == "batch_size=16,local_steps=1,step_size=0.3"
    config = sweep.points[1].config
    assert config is not None
    assert config.algorithm.local_steps == 5


@pytest.mark.parametrize(
    ("bundles", "message"),
    [
        (Bundles(["a.b=1,2", "c.d=1,2,3"]), "so all need as many: a.b has 2, c.d has 3"),
        (Bundles(["a.b=1,2"]), "--pair a.b=1,2: it goes with nothing"),
        (Bundles(["a.b=1,2", "x.y=3,4"]), "x.y is set twice"),
        (Bundles((), ["a.b=1..0.1"]), "with 0 < LOW < HIGH"),
        (Bundles((), ["a.b=0.1"]), "write section.key=LOW..HIGH"),
        (Bundles((), ["a.b=0.1..1"], draws=1), "--draws 1: at least 2"),
    ],
)
def test_what_is_refused(bundles: Bundles, message: str) -> None:
    with pytest.raises(ConfigError, match=message.replace(".", r"\.")):
        bundles.parse(["x.y=1"])


def test_random_values_are_log_uniform_and_repeat() -> None:
    many = Bundles((), ["algorithm.step_size=0.001..10"], draws=2000)
    ((axis,),) = many.parse([])
    logs = [math.log10(float(value)) for value in axis.values]
    assert -3 <= min(logs) < -2.9
    assert 0.9 < max(logs) <= 1
    shares = [sum(low <= one < low + 1 for one in logs) / 2000 for low in (-3, -2, -1, 0)]
    assert shares == pytest.approx([0.25] * 4, abs=0.04)
    assert many.parse([]) == ((axis,),)


def test_baselines_take_part_without_what_they_lack(bench: Bench) -> None:
    sweep = read(bench, "algorithm.name=fedsgd,fedbcd", "algorithm.local_steps=1,5")
    assert [point.values for point in sweep.points] == [("fedsgd", "-"), ("fedbcd", "1"), ("fedbcd", "5")]
    assert not any(point.refused for point in sweep.points)


def test_one_value_beyond_an_edge_that_was_chosen(bench: Bench) -> None:
    sweep = read(bench, "algorithm.step_size=0.001,0.003", changes=("run.rounds=4", "evaluate.best_by=loss"))
    executor = Here()
    wider, outcome = run_whole(
        sweep, bench.out, None, executor=executor, listener=SweepListener(), stop=Stop(), widen=2
    )
    assert wider.axes[0].values == ("0.001", "0.003", "0.009", "0.027")
    assert outcome.best is not None
    assert outcome.best.point.values == ("0.027",)
    assert len(executor.ran) == 4
    again = Here()
    run_whole(sweep, bench.out, None, executor=again, listener=SweepListener(), stop=Stop(), widen=2)
    assert again.ran == []
    with pytest.raises(ConfigError, match="leave one out"):
        require_edges(replace(sweep, halving=True), 1)


def test_when_the_time_is_up_what_has_finished_is_compared(bench: Bench) -> None:
    sweep = read(bench, "algorithm.step_size=0.1,0.3,1", changes=("run.rounds=4",))
    now = iter([0.0, *[99.0] * 100])
    bench.out.mkdir()
    keep_sweep(sweep, bench.out)
    stop = TimedStop(Stop(), 50.0, clock=lambda: next(now))
    executor = Here()
    outcome = carry_out(sweep, bench.out, None, executor=executor, listener=SweepListener(), stop=stop)
    assert not outcome.stopped
    assert outcome.left == 3 - len(executor.ran)
    assert len(executor.ran) == 1
    assert outcome.best is not None
    assert [result.remark for result in outcome.results].count("stopped 1 of 1") == outcome.left
    assert not outcome.failed
