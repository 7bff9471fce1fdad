"""Every run of a sweep is tracked by itself, in the processes that the sweep makes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.command_line import environment

pytestmark = pytest.mark.slow

CONFIG = """
data.name = "wine"
algorithm.name = "fedbcd"
[evaluate]
every = 2
[run]
rounds = 4
track = {track}
"""
SWEEP = ("--grid", "algorithm.step_size=0.1,1e9", "--seeds", "2", "--jobs", "2", "--choose", "last train_loss")


def sweep(folder: Path, track: list[str], **surroundings: str) -> list[Path]:
    """The run directories."""
    (folder / "wine.toml").write_text(CONFIG.format(track=json.dumps(track)))
    command = [sys.executable, "-m", "crosshatch", "sweep", "wine.toml", *SWEEP, "--out", "sweep", "--quiet"]
    ran = subprocess.run(command, cwd=folder, env=environment() | surroundings, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    return sorted((folder / "sweep" / "runs").iterdir())


def test_tensorboard(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard", reason='TensorBoard is not installed: pip install -e ".[tracking]"')
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    runs = sweep(tmp_path, ["tensorboard"])
    assert len(runs) == 4
    for run in runs:
        found = EventAccumulator(str(run / "tracking" / "tensorboard"))
        found.Reload()
        rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
        assert [one.step for one in found.Scalars("metrics/train_loss")] == [row["round"] for row in rows]


def test_mlflow(tmp_path: Path) -> None:
    pytest.importorskip("mlflow", reason='MLflow is not installed: pip install -e ".[tracking]"')
    address = (tmp_path / "store").as_uri()
    runs = sweep(tmp_path, ["mlflow"], MLFLOW_TRACKING_URI=address, MLFLOW_ALLOW_FILE_STORE="true")
    program = (
        "import json, sys; from mlflow import MlflowClient; client = MlflowClient(sys.argv[1])\n"
        "ids = [one.experiment_id for one in client.search_experiments()]\n"
        "print(json.dumps([[run.info.run_name, run.info.status] for run in client.search_runs(ids)]))"
    )
    surroundings = environment() | {"MLFLOW_ALLOW_FILE_STORE": "true", "MLFLOW_DISABLE_TELEMETRY": "true"}
    asked = subprocess.run(
        [sys.executable, "-c", program, address], env=surroundings, capture_output=True, text=True, check=True
    )
    found: list[Any] = json.loads(asked.stdout)
    assert sorted(found) == [[run.name, "FAILED" if "1e9" in run.name else "FINISHED"] for run in runs]
