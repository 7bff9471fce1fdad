"""Section [optimiser]: read, written back, refused, and runs that are resumed with their states."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from crosshatch.errors import ConfigError, CrosshatchError
from crosshatch.runs.config import config_text, decode_config
from crosshatch.runs.planning.plan import make_plan
from crosshatch.runs.prepare import prepare
from crosshatch.runs.train import train
from crosshatch.task.optimisers import Adam, Momentum
from tests.support.run_configs import MakeConfig
from tests.support.training import StopAt, lines, model


def test_plain_steps_are_the_default(make_config: MakeConfig) -> None:
    assert make_config().optimiser is None
    assert make_config() == make_config(optimiser={"name": "sgd"}) == make_config(optimiser={})
    assert tomllib.loads(config_text(make_config()))["optimiser"] == {"name": "sgd"}


def test_an_optimiser_is_read_and_written_back(make_config: MakeConfig) -> None:
    adam = make_config(optimiser={"name": "adam", "betas": [0.8, 0.95], "state": "kept"})
    assert adam.optimiser == Adam((0.8, 0.95), state="kept")
    ball = make_config(optimiser={"name": "momentum", "nesterov": True})
    assert ball.optimiser == Momentum(nesterov=True)
    for config in (adam, ball):
        assert decode_config(tomllib.loads(config_text(config))) == config
    assert prepare(adam, folder=None).simulator.task.optimiser == adam.optimiser


BAD: list[tuple[dict[str, Any], str]] = [
    ({"name": "adagrad"}, r"optimiser.name = 'adagrad' is unknown: Choose one of sgd, momentum, adam"),
    ({"name": "adan"}, "did you mean 'adam'"),
    ({"name": 3}, "optimiser.name = 3 is unknown"),
    ({"momentum": 0.9}, r"optimiser.momentum: plain steps .* have no settings: leave it out, or set optimiser.name"),
    ({"name": "sgd", "state": "kept"}, "optimiser.state: plain steps"),
    ({"name": "momentum", "momentum": 1.0}, r"optimiser.momentum has 1.0: must be at least 0 and below 1"),
    ({"name": "momentum", "momentum": "high"}, "optimiser.momentum = 'high': expected a number"),
    ({"name": "momentum", "nesterov": 1}, "optimiser.nesterov = 1: expected true or false"),
    ({"name": "momentum", "betas": [0.9, 0.9]}, "unknown key optimiser.betas: "),
    ({"name": "adam", "betas": [0.9]}, r"optimiser.betas = \[0.9\]: expected a list of 2 numbers"),
    ({"name": "adam", "betas": [0.9, -0.1]}, "optimiser.betas has -0.1: must be at least 0 and below 1"),
    ({"name": "adam", "betas": [0.9, float("nan")]}, "optimiser.betas has nan"),
    ({"name": "adam", "epsilon": 0.0}, "optimiser.epsilon = 0.0: must be a finite number above 0"),
    ({"name": "adam", "epsilon": float("inf")}, "optimiser.epsilon = inf"),
    ({"name": "adam", "state": "keep"}, "optimiser.state = 'keep': expected 'reset' or 'kept' or 'averaged'"),
]  # fmt: skip


@pytest.mark.parametrize(("table", "words"), BAD)
def test_bad_settings(make_config: MakeConfig, table: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        make_config(optimiser=table)


def test_a_section_that_is_no_table() -> None:
    tables: dict[str, Any] = {"data": {"name": "wine"}, "algorithm": {"name": "fedbcd"}, "run": {"rounds": 1}}
    with pytest.raises(ConfigError, match="optimiser = 'adam': expected a table of settings"):
        decode_config(tables | {"optimiser": "adam"})
    with pytest.raises(ConfigError, match=r"unknown section \[optimizer\]: did you mean \[optimiser\]"):
        decode_config(tables | {"optimizer": {"name": "adam"}})


def test_bad_settings_from_python() -> None:
    makers: list[tuple[Any, str]] = [
        (lambda: Adam(state="keep"), "optimiser.state = 'keep': must be"),  # type: ignore[arg-type]
        (lambda: Adam((0.9,)), "give two numbers"),  # type: ignore[arg-type]
        (lambda: Momentum(True), "optimiser.momentum has True"),
    ]
    for make, words in makers:
        with pytest.raises(ConfigError, match=words):
            make()


@pytest.mark.parametrize("key", ["step_size", "local_steps"])
def test_theory_chooses_for_plain_steps_alone(make_config: MakeConfig, key: str) -> None:
    with pytest.raises(ConfigError, match=f"algorithm.{key} = 'auto' with optimiser.name = 'adam'.*give a value"):
        make_config(algorithm={key: "auto"}, optimiser={"name": "adam"})


def test_a_plan_says_that_no_theorem_covers_it(make_config: MakeConfig) -> None:
    plan = make_plan(make_config(optimiser={"name": "momentum"}), folder=None)
    assert plan.judgements
    assert all("steps are not plain" in judged.theorem.differs for judged in plan.judgements)


@pytest.mark.parametrize("state", ["reset", "kept", "averaged"])
def test_resumed_and_uninterrupted_runs_are_equal(make_config: MakeConfig, tmp_path: Path, state: str) -> None:
    config = make_config(optimiser={"name": "adam", "state": state}, algorithm={"step_size": 0.05})
    train(config, out=tmp_path / "whole")
    stopped = train(config, out=tmp_path / "parts", watcher=StopAt(3))
    assert not stopped.finished
    assert train(config, out=tmp_path / "parts", resume=True).finished
    assert lines(tmp_path / "parts") == lines(tmp_path / "whole")
    assert model(tmp_path / "parts") == model(tmp_path / "whole")


def test_another_optimiser_does_not_go_on(make_config: MakeConfig, out: Path) -> None:
    train(make_config(optimiser={"name": "adam"}), out=out)
    with pytest.raises(CrosshatchError, match=r"optimiser.state = kept"):
        train(make_config(optimiser={"name": "adam", "state": "kept"}), out=out, resume=True)
