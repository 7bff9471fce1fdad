"""Stopped after any round and resumed to the same bits, at no cost to the rounds between checkpoints."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from crosshatch.runs.config import decode_config
from crosshatch.runs.train import train
from crosshatch.simulator.simulator import Simulator
from tests.support.training import StopAt, lines, model

GRAPH = {"data": {"name": "breast_cancer"}, "federation": {"silos": 3}, "model": {"l2": 1.0}}
GROUPS = {
    "data": {"name": "breast_cancer"}, "federation": {"silos": 2, "clients": 4, "groups": 3},
    "model": {"block": "mlp", "hidden": [6], "fusion": "head", "outputs": 2},
}  # fmt: skip


@pytest.mark.parametrize(
    ("tables", "algorithm"),
    [
        (GRAPH, {"name": "stcd", "local_steps": 2}),
        (GRAPH, {"name": "mtcd", "tokens": 2, "local_steps": 2, "hops_between_averages": 2}),
        (GRAPH, {"name": "dcpa"}),
        (GROUPS, {"name": "hsgd", "global_steps": 2, "local_steps": 1, "step_size": 0.1, "fraction": 0.5}),
        (GROUPS, {"name": "hsgd", "global_steps": 1, "local_steps": 1, "step_size": 0.1, "fraction": 0.5}),
    ],
)
def test_stopped_after_any_round(tmp_path: Path, tables: dict[str, Any], algorithm: dict[str, Any]) -> None:
    """Between checkpoints too, which the run that was not stopped knows nothing of."""
    run = {"rounds": 5, "checkpoint_every": 3, "name": "x", "threads": 1}
    config = decode_config(tables | {"algorithm": algorithm, "run": run})
    train(config, out=tmp_path / "whole")
    for stop in range(1, 5):
        train(config, out=tmp_path / f"parted{stop}", watcher=StopAt(stop))
        train(config, out=tmp_path / f"parted{stop}", resume=True)
        assert model(tmp_path / f"parted{stop}") == model(tmp_path / "whole")
        assert lines(tmp_path / f"parted{stop}") == lines(tmp_path / "whole")


@pytest.mark.parametrize("algorithm", [{"name": "stcd"}, {"name": "mtcd", "tokens": 2}, {"name": "dcpa"}])
def test_rounds_between_checkpoints_copy_nothing(
    out: Path, algorithm: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[int] = []
    snapshot = Simulator.snapshot

    def listen(simulator: Simulator) -> tuple[dict[str, Any], dict[str, Any]]:
        taken.append(simulator.round)
        return snapshot(simulator)

    monkeypatch.setattr(Simulator, "snapshot", listen)
    run = {"rounds": 12, "checkpoint_every": 5, "name": "x", "threads": 1}
    train(decode_config(GRAPH | {"algorithm": algorithm, "run": run}), out=out)
    assert taken == [0, 5, 10, 12, 12]  # the last round's, and that of the finished run
