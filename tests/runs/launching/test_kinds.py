"""Every kind of federation as processes: the simulator's model and bytes, and to the bit that of parties in memory."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from crosshatch.runs.config import Config, read_config
from crosshatch.runs.launching.launch import launch
from crosshatch.runs.prepare import prepare
from tests.runs.launching.kinds import KINDS, LOSSY, config_of
from tests.support.launched_kinds import engine_of, stored

QUICK = ("TDCD", "MTCD", "transfer, held, a draw for the class mean", "own parts")


def check_launched(config: Config, out: Path, tolerance: float) -> float:
    """The model of a run is the parties' in memory to the bit, and the simulator's to so much; how far it is."""
    config = read_config(out / "config.toml")
    engine, simulator = engine_of(config), prepare(config, folder=None).simulator
    found, sent = stored(out, engine_of(config).parties, config.run.rounds)
    for _ in range(config.run.rounds):
        engine.run_round()
        simulator.run_round()
    assert all(map(torch.equal, found, engine.weights))
    assert sent == engine.meter
    assert (sent.links, sent.exchanges) == (simulator.meter.links, simulator.meter.exchanges)
    furthest = max(float((one - two).abs().max()) for one, two in zip(found, simulator.weights, strict=True))
    assert furthest <= tolerance
    return furthest


@pytest.mark.parametrize("name", QUICK)
def test_some_kinds_as_simulated_and_as_in_memory(name: str, tmp_path: Path) -> None:
    config = config_of(tmp_path, name)
    assert launch(config, out=tmp_path / "out").finished
    check_launched(config, tmp_path / "out", 1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("name", KINDS)
def test_fifty_rounds_as_simulated(name: str, tmp_path: Path, record_property: Callable[[str, object], None]) -> None:
    config = config_of(tmp_path, name, "run.rounds=50", "evaluate.every=25")
    assert launch(config, out=tmp_path / "out").finished
    record_property("furthest", check_launched(config, tmp_path / "out", 1e-12))


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in KINDS if name not in LOSSY])
def test_two_hundred_rounds_in_single_precision(
    name: str, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    config = config_of(tmp_path, name, "run.rounds=200", "evaluate.every=100", "run.precision=float32")
    assert launch(config, out=tmp_path / "out").finished
    record_property("furthest", check_launched(config, tmp_path / "out", 1e-5))
