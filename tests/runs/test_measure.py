"""Settings that are "measure": the search on losses written down, real ones against all of the grid, and the config."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import numpy as np
import polars as pl
import pytest
import torch

from crosshatch.algorithms.abcd import ABCD
from crosshatch.algorithms.hsgd import HSGD
from crosshatch.algorithms.tdcd import TDCD
from crosshatch.cli import main
from crosshatch.errors import ConfigError, TrainingError
from crosshatch.runs import prepare as prepare_module
from crosshatch.runs.choosing import measure
from crosshatch.runs.choosing.measure import Candidate, StepSearch
from crosshatch.runs.choosing.trials import put_aside
from crosshatch.runs.config import Config, decode_config, encode_config, read_config
from crosshatch.runs.prepare import prepare
from crosshatch.runs.train import train
from crosshatch.schedules import Constant
from crosshatch.simulator.simulator import Simulator
from crosshatch.task.losses import Squared
from crosshatch.task.metrics import mean_loss
from tests.support.auto_configs import hsgd, make
from tests.support.run_configs import MakeConfig
from tests.support.training import StopAt, lines, model

Losses = Callable[[int, float, int], float]


class Scripted:
    """Stands for a simulation: after each round the loss is what was written down; NaN diverges."""

    def __init__(self, algorithm: ABCD, losses: Losses, log: list[tuple[int, float, int]]) -> None:
        assert isinstance(algorithm.step_size, Constant)
        self.key = (algorithm.local_steps, algorithm.step_size.value)
        self.losses, self.log, self.round = losses, log, 0
        self.task, self.data, self.meter = self, self, self
        self.loss, self.silos, self.y_test, self.target = Squared(), (), torch.zeros(4), "regression"
        self.sent = 100 * algorithm.local_steps if algorithm.window > 1 else 100

    @property
    def bytes(self) -> int:
        return self.round * self.sent

    def zero_objective(self) -> float:
        return 1.0

    def run_round(self) -> None:
        self.round += 1
        self.log.append((*self.key, self.round))
        if math.isnan(self.losses(*self.key, self.round)):
            raise TrainingError(f"round {self.round}: too far")

    def scores(self, _: object) -> torch.Tensor:
        value = self.losses(*self.key, self.round) if self.round else 1.0
        spread = torch.tensor([0.9, 1.1, 1.0, 1.0], dtype=torch.float64)
        return (2 * value * spread).sqrt()[:, None]


def searching(losses: Losses, *, rounds: int = 20, window: int = 1) -> tuple[StepSearch, list[tuple[int, float, int]]]:
    log: list[tuple[int, float, int]] = []

    def simulate(algorithm: Any) -> Simulator:
        return cast(Simulator, Scripted(algorithm, losses, log))

    return StepSearch(ABCD(10, Constant(0.1), window=window), simulate, rounds), log


def bowl(best: float) -> Losses:
    """Lowest at a step size; beyond a hundred times of it training diverges."""

    def loss(_: int, step: float, __: int) -> float:
        return math.nan if step > 100 * best else 0.1 + 0.05 * abs(math.log10(step / best))

    return loss


@pytest.mark.parametrize("best", [1e-7, 1e-4, 0.003, 0.1, 0.4, 10.0, 1000.0])
def test_the_step_size_is_found_wherever_it_is(best: float) -> None:
    search, log = searching(bowl(best))
    found = search.best_step(Candidate(half_decades=measure.FIRST)).step_size
    assert found is not None
    assert abs(math.log10(found / best)) <= 0.26
    longest = {step for _, step, round in log if round == 20}
    assert len(longest) <= 3  # it and its neighbours


def test_longer_trials_may_change_it() -> None:
    """What is best after 5 rounds overfits after 20."""
    search, _ = searching(lambda _, step, round: 0.1 + 0.05 * abs(math.log10(step * (1 if round <= 5 else 10))))
    assert search.best_step(Candidate(half_decades=0)).step_size == 0.1


@pytest.mark.parametrize(
    ("by_steps", "chosen"),
    [
        ({1: 0.5, 2: 0.4, 5: 0.3, 10: 0.2, 20: 0.1, 50: 0.3}, 20),
        ({1: 0.5, 2: 0.1, 5: 0.2, 10: 0.3, 20: 0.4, 50: 0.5}, 2),
        ({1: 0.5, 2: 0.4, 5: 0.3, 10: 0.2, 20: 0.2, 50: 0.1}, 10),
        ({1: 0.5, 2: math.nan, 5: math.nan, 10: math.nan, 20: 0.1, 50: 0.1}, 1),
        ({1: 0.6, 2: 0.5, 5: 0.4, 10: 0.3, 20: 0.2, 50: 0.1}, 50),
    ],
)
def test_q_from_the_middle_to_the_better_side(by_steps: dict[int, float], chosen: int) -> None:
    search, _ = searching(lambda steps, _, __: by_steps[steps])
    assert search.best_interval(Candidate(local_steps=measure.MIDDLE)).local_steps == chosen


def test_fewer_steps_stay_where_more_are_ahead_by_noise_alone() -> None:
    """Five steps are behind by less than the standard error of the differences, sample by sample."""
    search, _ = searching(lambda steps, _, __: {5: 0.3002, 10: 0.3}.get(steps, 0.5))
    first = Candidate(local_steps=measure.MIDDLE)
    assert search.best_interval(first).local_steps == 10  # all samples agree on that little
    losses = search.verdicts[Candidate(5)].losses
    assert losses is not None
    losses += torch.tensor([0.01, -0.01, 0.02, -0.02], dtype=torch.float64)
    assert search.verdicts[Candidate(5)].is_as_good_as(search.verdicts[Candidate(10)])


def test_both_at_once() -> None:
    """The best step size is 1 / Q, the best Q is 5."""

    def loss(steps: int, step: float, _: int) -> float:
        return 0.1 + 0.05 * abs(math.log10(step * steps)) + 0.05 * abs(math.log10(steps / 5))

    search, _ = searching(loss)
    found = search.best_interval(Candidate(measure.MIDDLE, measure.FIRST))
    assert found.local_steps == 5
    assert found.step_size == pytest.approx(0.2, rel=0.7)


def test_equal_bytes_where_rounds_differ() -> None:
    """A round of Q steps sends Q times as much here: twenty rounds of ten steps are a hundred of two."""
    search, log = searching(lambda steps, _, __: 0.1 + 0.01 * steps, window=2)
    search.best_interval(Candidate(local_steps=measure.MIDDLE))
    last = {steps: max(round for one, _, round in log if one == steps) for steps in (1, 2, 5, 10, 20)}
    assert last == {1: 200, 2: 100, 5: 40, 10: 20, 20: 10}


def test_what_diverges_late_gives_way() -> None:
    search, _ = searching(lambda _, step, round: math.nan if step > 0.2 and round > 30 else 1 / (1 + step))
    found = search.best_step(Candidate(half_decades=measure.FIRST))
    assert found.step_size == 1000
    assert search.lasting(found, 60).step_size == 0.1
    search, _ = searching(lambda steps, _, round: math.nan if steps > 2 and round > 30 else 1 / steps)
    found = search.best_interval(Candidate(local_steps=measure.MIDDLE))
    assert (found.local_steps, search.lasting(found, 60).local_steps) == (50, 2)
    assert search.verdicts[Candidate(50)].error == "round 31: too far"


def test_where_everything_diverges_place_and_remedy_are_named() -> None:
    search, _ = searching(lambda *_: math.nan)
    with pytest.raises(
        ConfigError, match=r"^algorithm.step_size: .* with step_size = 1e-08 \(round 1: too far\): look"
    ):
        search.best_step(Candidate(half_decades=measure.FIRST))
    search, _ = searching(lambda *_: math.nan)
    with pytest.raises(ConfigError, match=r'^algorithm.local_steps: .* lower step_size, or set it to "measure"$'):
        search.best_interval(Candidate(local_steps=measure.MIDDLE))


# From here on with data.


@pytest.mark.parametrize("open_keys", [("local_steps",), ("step_size",), ("local_steps", "step_size")])
def test_a_config_reads_what_it_writes(make_config: MakeConfig, open_keys: tuple[str, ...]) -> None:
    config = make_config(algorithm=dict.fromkeys(open_keys, "measure"))
    tables = encode_config(config)
    assert config.measured == open_keys
    assert [tables["algorithm"][key] for key in open_keys] == ["measure"] * len(open_keys)
    assert decode_config(tables) == config


def losses_by_hand(config: Config, trials: dict[Any, dict[str, Any]], rounds: int) -> dict[Any, float]:
    """Of the samples put aside, for other settings of the algorithm: the mean over the last quarter of the rounds."""
    found = {}
    for key, changes in trials.items():
        seen: list[float] = []
        table = encode_config(config)
        table["algorithm"] |= changes
        one = prepare(decode_config(table), folder=None)
        aside = put_aside(one.simulator.data, seed=config.run.seed, key="")
        simulator = prepare_module.make_simulator(one.config, one.config.algorithm, aside, one.simulator.task)
        try:
            for _ in range(rounds):
                simulator.run_round()
                scores = simulator.scores([silo.test for silo in aside.silos]).double()
                right, wrong = (
                    mean_loss(scores, y, one.simulator.task.loss) for y in (aside.y_test, aside.y_test.roll(1))
                )
                seen.append(right + (wrong - right) / len(scores))
        except TrainingError:
            seen = [math.inf]
        found[key] = float(np.mean(seen[-(rounds // 4) :]))
    return found


NAMES: list[tuple[str, dict[str, Any]]] = [
    ("central", {}), ("fedsgd", {}), ("fedbcd", {}), ("fedbcd", {"local_steps": 20}), ("abcd", {}),
    ("abcd", {"local_steps": 50, "window": 1}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "settings"), NAMES)
def test_the_step_size_is_the_best_of_the_grid(name: str, settings: dict[str, Any]) -> None:
    algorithm = {"name": name, "step_size": "measure", "batch_size": 48, **settings}
    tables = {"federation": {"silos": 2}, "algorithm": algorithm, "run": {"name": "x", "rounds": 12, "threads": 1}}
    config = make(tables)
    found = prepare(config, folder=None).config
    assert found.measured == ()
    assert isinstance(found.algorithm.step_size, Constant)
    grid = {half: {"step_size": float(f"{10 ** (half / 2):.2g}")} for half in range(-6, 5)}
    losses = losses_by_hand(config, grid, rounds=12)
    best = min(losses, key=lambda half: losses[half])
    assert found.algorithm.step_size.value == grid[best]["step_size"]


@pytest.mark.parametrize(("step_size", "labels"), [(0.03, "shared"), (2.0, "a"), (0.3, "a")])
def test_q_is_the_shortest_of_the_best(make_config: MakeConfig, step_size: float, labels: str) -> None:
    """Of all the grid here, where the loss has one valley."""
    algorithm = {"name": "abcd", "local_steps": "measure", "step_size": step_size}
    config = make_config(federation={"labels": labels}, algorithm=algorithm, run={"rounds": 24})
    told: list[str] = []
    found = prepare(config, folder=None, tell=told.append).config.algorithm
    losses = losses_by_hand(config, {q: {"local_steps": q} for q in measure.INTERVALS}, rounds=16)
    lasting = f"loss {{}} after round {config.run.rounds}"
    tried = [line.split() for line in told if line.startswith("tried") and not line.endswith(lasting[7:])]
    said = {int(words[3].rstrip(":")): float(words[5]) for words in tried}
    assert said == pytest.approx({q: losses[q] for q in said}, rel=1e-3)
    assert found.local_steps <= min(losses, key=lambda q: losses[q])
    assert told[0] == "algorithm.local_steps: trials of up to 16 rounds, judged by training samples put aside"
    assert told[-1] == f"chosen: local_steps = {found.local_steps}"


def test_features_that_nobody_scaled(tmp_path: Path) -> None:
    """Columns thirty times as wide want steps a thousand times as short."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 4))
    columns = {f"x{i}": 30 * x[:, i] for i in range(4)} | {"y": 200 * x @ [1, 2, -1, 0.5] + rng.normal(size=300)}
    pl.DataFrame(columns).write_csv(tmp_path / "wide.csv")
    tables = {
        "data": {"path": str(tmp_path / "wide.csv"), "label": "y", "target": "regression", "standardise": False},
        "federation": {"silos": 2}, "model": {"block": "linear"},
        "algorithm": {"name": "abcd", "step_size": "measure", "local_steps": 5},
        "run": {"name": "wide", "rounds": 20, "threads": 1},
    }  # fmt: skip
    prepared = prepare(decode_config(tables), folder=None)
    assert isinstance(prepared.config.algorithm.step_size, Constant)
    assert 1e-4 < prepared.config.algorithm.step_size.value < 3e-3  # 1 over the largest eigenvalue is 0.001
    for _ in range(20):
        prepared.simulator.run_round()
    assert prepared.simulator.evaluate(["r2"])["r2"] > 0.99


OTHERS: list[dict[str, Any]] = [
    hsgd(step_size="measure", global_steps=4, local_steps=2),
    hsgd(step_size="measure", local_steps="measure"),
    {"federation": {"silos": 1, "clients": 4}, "algorithm": {"name": "fedavg", "step_size": "measure"}},
    {"federation": {"silos": 2, "clients": 4, "groups": 2},
     "algorithm": {"name": "tiered", "tiers": "H(8) V(4) H(2)", "step_size": "measure", "batch_size": 200}},
    {"federation": {"silos": 2, "groups": 2}, "algorithm": {"name": "jfl", "step_size": "measure", "fraction": 0.5}},
    {"federation": {"silos": 2, "clients": 3},
     "algorithm": {"name": "c-tdcd", "step_size": "measure", "local_steps": "measure", "batch_size": 430}},
]  # fmt: skip


@pytest.mark.parametrize("tables", OTHERS, ids=lambda tables: tables["algorithm"]["name"])
def test_every_method_of_silos(tables: dict[str, Any]) -> None:
    """Batches that hardly fit the data included."""
    config = make(tables)
    prepared = prepare(config, folder=None)
    first = prepared.simulator.objective()
    for _ in range(5):
        prepared.simulator.run_round()
    assert prepared.simulator.objective() < first
    assert isinstance(prepared.config.algorithm.step_size, Constant)
    assert prepared.config == prepare(config, folder=None).config


@pytest.mark.parametrize("key", ["global_steps", "local_steps"])
def test_p_is_q(key: str) -> None:
    found = prepare(make(hsgd(step_size=0.1, **{key: "measure"})), folder=None).config.algorithm
    assert isinstance(found, HSGD)
    assert found.global_steps == found.local_steps


def test_nobody_to_send_to(make_config: MakeConfig) -> None:
    one = {"silos": 1, "clients": 1}
    found = prepare(make_config(federation=one, algorithm={"name": "tdcd", "local_steps": "measure"}), folder=None)
    assert found.config.algorithm.local_steps in measure.INTERVALS


def test_a_resumed_run_does_not_measure_again(
    make_config: MakeConfig, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = make_config(algorithm={"local_steps": "measure", "step_size": "measure"})
    whole = out.with_name("whole")
    train(config, out=whole)
    train(config, out=out, watcher=StopAt(3))
    monkeypatch.setattr(prepare_module, "measure", None)
    train(config, out=out, resume=True)
    assert lines(out) == lines(whole)
    assert model(out) == model(whole)
    written = read_config(out / "config.toml")
    assert written.measured == ()
    assert isinstance(written.algorithm, TDCD)
    assert isinstance(written.algorithm.step_size, Constant)


@pytest.mark.parametrize(
    ("algorithm", "said"),
    [
        ({"local_steps": "measure", "global_steps": 10}, "global_steps = 10: where P or Q is"),
        (
            {"local_steps": "measure", "step_size": "auto"},
            'step_size = "auto": where local_steps is "measure" it needs',
        ),
        ({"step_size": "measure", "local_steps": "auto"}, 'steps = "auto": where step_size is "measure" it needs'),
        ({"local_steps": "mesure"}, 'local_steps = \'mesure\': expected a whole number, "auto" or "measure"'),
        (
            {"step_size": "mesure"},
            'step_size = \'mesure\': expected a number, a schedule\'s table, "auto" or "measure"',
        ),
    ],
)
def test_refused(algorithm: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        make(hsgd(**algorithm))


@pytest.mark.parametrize("name", ["stcd", "mtcd", "dcpa"])
def test_not_on_a_graph(name: str) -> None:
    with pytest.raises(ConfigError, match=r"^algorithm.step_size.*'measure'") as caught:
        make({"algorithm": {"name": name, "step_size": "measure"}})
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["central", "fedavg", "jfl", "tiered"])
def test_words_where_there_is_one_step_size_alone(name: str) -> None:
    with pytest.raises(ConfigError, match=r"^algorithm.step_size = 'maesure': expected a number, a .* or \"measure\"$"):
        make({"algorithm": {"name": name, "step_size": "maesure"}})


@pytest.mark.parametrize(
    ("tables", "said"),
    [
        ({"codecs": {"average_groups": "half"}}, "codecs.average_groups: this run has no such exchange"),
        ({"algorithm": {"batch_size": 10**6}}, "batch_size = 1000000: more than the"),
    ],
)
def test_what_is_refused_is_refused_before_the_trials(
    make_config: MakeConfig, monkeypatch: pytest.MonkeyPatch, tables: dict[str, dict[str, Any]], said: str
) -> None:
    monkeypatch.setattr(prepare_module, "measure", None)
    algorithm = {"local_steps": "measure", "step_size": "measure"} | tables.get("algorithm", {})
    with pytest.raises(ConfigError, match=said):
        prepare(make_config(**(tables | {"algorithm": algorithm})), folder=None)


def test_users_see_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "wine.toml"
    path.write_text(
        'data = {name = "wine"}\nalgorithm = {name = "abcd", step_size = "measure"}\nrun = {rounds = 4, threads = 1}\n'
    )
    printed = []
    for options in ([], ["--quiet"]):
        with pytest.raises(SystemExit) as ended:
            main(["train", str(path), "--out", str(tmp_path / f"run{len(options)}"), *options])
        assert not ended.value.code
        printed.append(capsys.readouterr().out)
    assert printed[0].startswith("algorithm.step_size: trials of up to 4 rounds")
    written = read_config(tmp_path / "run0" / "config.toml").algorithm.step_size
    assert isinstance(written, Constant)
    assert f"chosen: step_size = {written.value:g}\n" in printed[0]
    assert printed[1] == ""
