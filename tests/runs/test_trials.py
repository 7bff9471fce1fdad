"""`local_steps = "measure"`: the trials against training by hand, and what becomes of the config."""

from __future__ import annotations

from pathlib import Path
from statistics import median
from typing import Any

import pytest

from crosshatch.algorithms.hsgd import HSGD
from crosshatch.algorithms.tdcd import TDCD
from crosshatch.errors import ConfigError
from crosshatch.runs.choosing import trials
from crosshatch.runs.config import decode_config, encode_config, read_config
from crosshatch.runs.prepare import prepare
from crosshatch.runs.train import train
from tests.runs.conftest import MakeConfig
from tests.runs.test_auto import hsgd, make
from tests.runs.test_train import StopAt, lines


def test_a_config_reads_what_it_writes(make_config: MakeConfig) -> None:
    config = make_config(algorithm={"local_steps": "measure"})
    tables = encode_config(config)
    assert (config.measured, tables["algorithm"]["local_steps"]) == (("local_steps",), "measure")
    assert decode_config(tables) == config


@pytest.mark.parametrize(("step_size", "derivatives"), [(0.03, "each_step"), (2.0, "each_step"), (0.3, "each_round")])
def test_the_lowest_loss_for_the_bytes(make_config: MakeConfig, step_size: float, derivatives: str) -> None:
    algorithm = {"step_size": step_size, "derivatives": derivatives}
    federation = {"labels": "a"}
    losses: dict[int, float] = {}
    budget = 0
    for steps in (1, 2, 5, 10, 20, 50):
        one = prepare(make_config(federation=federation, algorithm=algorithm | {"local_steps": steps}), folder=None)
        seen = []
        while one.simulator.meter.bytes < (budget or 1):
            one.simulator.run_round()
            seen.append(one.simulator.objective())
            budget = budget or 12 * one.simulator.meter.bytes
        losses[steps] = median(seen[len(seen) // 2 :])
    lowest = min(losses.values())
    config = make_config(federation=federation, algorithm=algorithm | {"local_steps": "measure"})
    found = prepare(config, folder=None).config
    assert isinstance(found.algorithm, TDCD)
    assert found.measured == ()
    assert found.algorithm.local_steps == min(q for q, loss in losses.items() if loss <= 1.01 * lowest)


@pytest.mark.parametrize("key", ["global_steps", "local_steps"])
def test_p_is_q(key: str) -> None:
    found = prepare(make(hsgd(step_size=0.1, **{key: "measure"})), folder=None).config.algorithm
    assert isinstance(found, HSGD)
    assert found.global_steps == found.local_steps


def test_nobody_to_send_to(make_config: MakeConfig) -> None:
    one = {"silos": 1, "clients": 1}
    found = prepare(make_config(federation=one, algorithm={"name": "tdcd", "local_steps": "measure"}), folder=None)
    assert found.config.algorithm.local_steps in trials.CANDIDATES


def test_a_resumed_run_does_not_measure_again(
    make_config: MakeConfig, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = make_config(algorithm={"local_steps": "measure"})
    whole = out.with_name("whole")
    train(config, out=whole)
    train(config, out=out, watcher=StopAt(3))
    monkeypatch.setattr(trials, "best_of", None)
    train(config, out=out, resume=True)
    assert lines(out) == lines(whole)
    assert read_config(out / "config.toml").measured == ()


@pytest.mark.parametrize(
    ("algorithm", "said"),
    [
        ({"local_steps": "measure", "global_steps": 10}, "global_steps = 10: where P or Q is"),
        ({"local_steps": "measure", "step_size": "auto"}, 'step_size = "auto": where local_steps is "measure"'),
        ({"local_steps": "mesure"}, "local_steps = 'mesure': expected a whole number"),
    ],
)
def test_refused(algorithm: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        make(hsgd(**algorithm))


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
    monkeypatch.setattr(trials, "best_of", None)
    algorithm = {"local_steps": "measure"} | tables.get("algorithm", {})
    with pytest.raises(ConfigError, match=said):
        prepare(make_config(**(tables | {"algorithm": algorithm})), folder=None)
