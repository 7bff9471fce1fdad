"""Checkpoints hold what is used, and those with more in them are still read."""

from __future__ import annotations

import json
from dataclasses import asdict, fields
from pathlib import Path

import torch
from safetensors.torch import save_file

from crosshatch.runs.checkpoint import Checkpoint, read_checkpoint, write_checkpoint
from tests.architecture.modules import modules

STATE = Checkpoint({"round": 3}, 120, 1.5, {"a": "loop"})


def test_every_field_is_read_somewhere() -> None:
    (train,) = (module for module in modules() if module.name == "crosshatch.runs.train")
    assert [field.name for field in fields(Checkpoint) if f"state.{field.name}" not in train.text] == []


def test_what_is_written_is_read(tmp_path: Path) -> None:
    write_checkpoint(tmp_path / "state", {"x": torch.arange(3.0)}, STATE)
    tensors, state = read_checkpoint(tmp_path / "state")
    assert state == STATE
    assert tensors["x"].tolist() == [0, 1, 2]


def test_a_field_of_former_times_is_passed_over(tmp_path: Path) -> None:
    text = json.dumps(asdict(STATE) | {"finished": False})
    save_file({"x": torch.zeros(1)}, tmp_path / "state", {"state": text})
    assert read_checkpoint(tmp_path / "state")[1] == STATE
