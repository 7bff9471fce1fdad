"""Settings that are "auto": what they become, that the config written runs again, and that a run can be resumed."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from crosshatch.algorithms.hsgd import HSGD
from crosshatch.algorithms.tdcd import TDCD
from crosshatch.errors import ConfigError
from crosshatch.runs.choosing import auto
from crosshatch.runs.choosing.auto import both, estimate_start, strategy_2
from crosshatch.runs.config import decode_config, encode_config, read_config
from crosshatch.runs.prepare import prepare
from crosshatch.runs.train import train
from crosshatch.schedules import Adaptive, parse_schedule, to_table
from crosshatch.theory.constants import Constants
from crosshatch.theory.strategies import best_interval
from tests.support.auto_configs import hsgd, make
from tests.support.run_configs import MakeConfig
from tests.support.training import StopAt, lines, model

CONSTANTS = Constants(2.0, 3.0, (2.0, 1.5), 4.0, (0.1, 0.2), (0.3, 0.4))


def test_a_config_with_auto_reads_what_it_writes() -> None:
    config = make(hsgd(global_steps="auto", local_steps="auto", step_size="auto"))
    tables = encode_config(config)
    assert [tables["algorithm"][key] for key in config.auto] == ["auto"] * 3
    assert decode_config(tables) == config


@pytest.mark.parametrize(
    ("given", "steps"),
    [
        ({"global_steps": "auto", "local_steps": 5}, 5),
        ({"global_steps": 15, "local_steps": "auto"}, 15),
    ],
)
def test_strategy_1(given: dict[str, Any], steps: int) -> None:
    chosen = prepare(make(hsgd(**given)), folder=None).config
    assert isinstance(chosen.algorithm, HSGD)
    assert (chosen.algorithm.global_steps, chosen.algorithm.local_steps) == (steps, steps)
    assert chosen.auto == ()


def test_p_and_q_go_together_where_one_is_left_out() -> None:
    assert make(hsgd(local_steps="auto")).auto == ("global_steps", "local_steps")
    assert make(hsgd(global_steps="auto")).auto == ("global_steps", "local_steps")


@pytest.mark.parametrize("rule", ["paper", "derived"])
def test_strategy_2_agrees_with_the_formula_for_its_own_iterations(rule: Any) -> None:
    steps = strategy_2(CONSTANTS, step_size=0.004, rounds=30, rule=rule)
    assert steps > 2
    found = best_interval(
        gap=2.0, rho=4.0, delta_squared=0.4, step_size=0.004, iterations=30 * steps, rule=rule
    )  # fmt: skip
    assert abs(found - steps) <= 1


def test_both_at_once() -> None:
    steps, step_size = both(CONSTANTS, 1.5, rounds=3)
    first = min(_root(1.5, 1), 1 / 32)
    assert steps == strategy_2(CONSTANTS, step_size=float(f"{first:.6g}"), rounds=3)
    assert step_size == pytest.approx(min(_root(1.5, steps), 1 / (32 * steps)), rel=1e-5)


def _root(gradient: float, steps: int) -> float:
    """The positive root of 3 a x^2 + 2 b x - c, by numpy."""
    a, b, c = 24 * steps**3 * 16 * 0.4, 3 * steps**2 * 4 * 0.4, steps / 4 * gradient
    return float(max(np.roots([3 * a, 2 * b, -c]).real))


@pytest.mark.parametrize("step_size", [0.004, 0.3])
def test_the_formula_where_the_theorem_allows_the_step_size_else_trials(
    make_config: MakeConfig, step_size: float
) -> None:
    config = make_config(algorithm={"local_steps": "auto", "step_size": step_size})
    found = prepare(config, folder=None).config.algorithm
    assert isinstance(found, TDCD)
    tried = make_config(algorithm={"local_steps": "measure", "step_size": step_size})
    at_start = prepare(make_config(algorithm={"local_steps": 1, "step_size": step_size}), folder=None)
    constants, _ = estimate_start(TDCD(1, batch_size=48), at_start.simulator.data, at_start.simulator.task, seed=0)
    formula = strategy_2(constants, step_size=step_size, rounds=6)
    allowed = step_size <= 1 / (8 * formula * constants.rho)
    assert allowed == (step_size < 0.1)
    assert found.local_steps == (formula if allowed else prepare(tried, folder=None).config.algorithm.local_steps)


def test_the_config_a_run_writes_runs_again(make_config: MakeConfig, out: Path) -> None:
    config = make_config(algorithm={"local_steps": "auto", "step_size": "auto"})
    train(config, out=out)
    written = read_config(out / "config.toml")
    assert written.auto == ()
    assert isinstance(written.algorithm, TDCD)
    assert isinstance(written.algorithm.step_size, Adaptive)
    again = out.with_name("again")
    train(written, out=again)
    assert lines(again) == lines(out)
    assert model(again) == model(out)


def test_the_step_size_follows_the_gradient(make_config: MakeConfig) -> None:
    """Against the gradient of a logistic regression, written down."""
    config = make_config(algorithm={"step_size": "auto", "local_steps": 2}, evaluate={"every": 3})
    simulator = prepare(replace(config, run=replace(config.run, precision="float64")), folder=None).simulator

    def current() -> Adaptive:
        step_size = simulator.algorithm.step_size
        assert isinstance(step_size, Adaptive)
        return step_size

    x = torch.cat([torch.cat([s.train, torch.ones(len(s.train), 1)], 1) for s in simulator.data.silos], 1).numpy()
    y = simulator.data.y_train.numpy()
    first = current()
    assert first.every == 3
    for round in range(7):
        theta = np.concatenate([weights.numpy() for weights in simulator.weights])
        gradient = x.T @ (1 / (1 + np.exp(-x @ theta)) - y) / len(y)
        before = current().value
        simulator.run_round()
        if round in (3, 6):
            noise, rho, squared = first.delta_squared, first.rho, float(gradient @ gradient)
            a, b, c = 24 * 8 * rho**2 * noise, 12 * rho * noise, squared / 2
            root = max(np.roots([3 * a, 2 * b, -c]).real)
            assert current().value == pytest.approx(min(root, 1 / (16 * rho)), rel=1e-6)
            assert current().value != before
        else:
            assert current().value == before


@pytest.mark.parametrize("stop", [3, 4, 5])
def test_a_resumed_run_is_the_same_bit_for_bit(out: Path, stop: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stopped right before, at and between the rounds at which the step size is found anew."""
    config = make(
        hsgd(global_steps=2, local_steps=1, step_size="auto") | {"run": {"name": "r", "rounds": 9, "threads": 1}}
    )
    whole = out.with_name("whole")
    train(config, out=whole)
    assert not train(config, out=out, watcher=StopAt(stop)).finished

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("estimated again")

    monkeypatch.setattr(auto, "estimate", refuse)
    assert train(config, out=out, resume=True).finished
    assert lines(out) == lines(whole)
    assert model(out) == model(whole)


def test_dropout_does_not_matter(make_config: MakeConfig, tmp_path: Path) -> None:
    path = tmp_path / "block.py"
    path.write_text(
        "import torch\n"
        "class Dropping(torch.nn.Sequential):\n"
        "    def __init__(self, input_shape, outputs):\n"
        "        first, last = torch.nn.Linear(input_shape[0], 4), torch.nn.Linear(4, outputs)\n"
        "        super().__init__(first, torch.nn.Dropout(0.5), last)\n"
    )
    config = make_config(model={"block": f"{path}:Dropping"}, algorithm={"step_size": "auto"})
    first, again = (prepare(config, folder=None).config.algorithm for _ in range(2))
    assert first == again


@pytest.mark.parametrize(
    ("algorithm", "words"),
    [
        ({"name": "central", "step_size": "auto"}, "algorithm.step_size"),
        ({"name": "tiered", "tiers": "auto"}, "auto"),
        ({"name": "fedbcd", "local_steps": "automatic"}, "algorithm.local_steps = 'automatic'"),
    ],
)
def test_what_cannot_be_auto(algorithm: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words) as caught:
        make({"algorithm": algorithm})
    assert "\n" not in str(caught.value)


def test_without_noise_there_is_no_interval() -> None:
    quiet = replace(CONSTANTS, client_noise=(0.0, 0.0))
    with pytest.raises(ConfigError, match="Q\\* is above 1000: give a number"):
        strategy_2(quiet, step_size=0.1, rounds=10)
    assert math.isfinite(both(CONSTANTS, 1.0, rounds=1000)[1])


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"rho": 0.0}, "positive, finite rho"),
        ({"delta_squared": -1.0}, "delta_squared of at least 0"),
        ({"every": 0}, "every >= 1"),
        ({"every": None}, "every >= 1"),
        ({"rho": "large"}, "a number"),
        ({"sigma": 1.0}, "unknown key 'sigma'"),
    ],
)
def test_adaptive_schedules_that_make_no_sense(changes: dict[str, Any], words: str) -> None:
    table = {"kind": "adaptive", "value": 0.1, "rho": 1.0, "delta_squared": 0.5, "every": 4}
    assert parse_schedule(table) == Adaptive(0.1, 1.0, 0.5, 4)
    assert to_table(Adaptive(0.1, 1.0, 0.5, 4)) == table
    with pytest.raises(ConfigError, match=words):
        parse_schedule(table | changes)
    with pytest.raises(ConfigError, match="needs rho"):
        parse_schedule({"kind": "adaptive", "value": 0.1})
