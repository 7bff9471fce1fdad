"""A run that has lost a file is refused by name, and nothing of it is replaced."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from crosshatch.errors import RunError
from crosshatch.runs.config import read_config
from crosshatch.runs.launching.launch import launch
from crosshatch.runs.train import train

CONFIG = """
data = {name = "wine"}
federation = {silos = 2, clients = 2}
algorithm = {name = "tdcd", local_steps = 2, batch_size = 32, step_size = 0.1}
run = {rounds = 4, threads = 1}
"""


def all_files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.mark.parametrize(
    ("lost", "said"),
    [
        ("config.toml", "has lost its config.toml: put it back, or choose another --out"),
        ("checkpoint", "has finished, and its checkpoint is gone: put it back, or choose another --out"),
    ],
)
def test_of_a_run(lost: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "wine.toml").write_text(CONFIG)
    out = tmp_path / "run"
    assert train(read_config(tmp_path / "wine.toml", name="run"), out=out).finished
    path = out / lost
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    before = all_files(out)
    more = read_config(tmp_path / "wine.toml", ["run.rounds=8"], name="run")
    with pytest.raises(RunError, match=said):
        train(more, out=out, resume=True)
    assert all_files(out) == before


@pytest.mark.parametrize("damage", ["gone", "cut off"])
def test_of_a_party(damage: str, tmp_path: Path) -> None:
    (tmp_path / "wine.toml").write_text(CONFIG)
    config, out = read_config(tmp_path / "wine.toml", name="run"), tmp_path / "run"
    assert launch(config, out=out).finished
    (out / "summary.json").unlink()
    home = out / "parties" / "client-0-1-0"
    shutil.rmtree(home) if damage == "gone" else (home / "plan.json").write_text("{")
    with pytest.raises(
        RunError, match=r"client-0-1-0: its plan cannot be read .*: restore its folder, or launch a new"
    ):
        launch(config, out=out, resume=True)
    (out / "config.toml").unlink()
    with pytest.raises(RunError, match="has lost its config"):
        launch(config, out=out, resume=True)
