"""Checkpoints: one safetensors file, there whole or not at all, with everything later rounds depend on."""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from crosshatch.errors import RunError
from crosshatch.runs.files import write_whole, writing


@dataclass(frozen=True)
class Checkpoint:
    """The simulator's state beside what the loop knows: where the metrics file ended and how long it took so far.

    `parts` has the sha256 of each file of a user's own, for a run goes on with the same ones only.
    """

    simulator: dict[str, Any]
    metrics_offset: int
    wall_seconds: float
    strategy: dict[str, str]
    parts: dict[str, str] = field(default_factory=dict)


def write_checkpoint(path: Path, tensors: dict[str, Tensor], state: Checkpoint) -> None:
    # One metadata key: safetensors writes several in no fixed order, and equal runs should write equal files.
    # Copies: groups that were just averaged share their blocks, which the format refuses.
    copies = {name: tensor.clone(memory_format=torch.contiguous_format) for name, tensor in tensors.items()}
    content = save(copies, {"state": json.dumps(asdict(state))})
    with writing(path.parent):
        path.parent.mkdir(exist_ok=True)
        write_whole(path, content)


def read_checkpoint(path: Path) -> tuple[dict[str, Tensor], Checkpoint]:
    try:
        with safe_open(path, framework="pt") as file:
            # Cloned: a tensor inside the mapped file is aligned differently, and kernels may then round differently.
            tensors = {name: file.get_tensor(name).clone() for name in file.keys()}  # noqa: SIM118 - not a dict
            metadata = file.metadata() or {}
        return tensors, msgspec.json.decode(metadata["state"], type=Checkpoint)
    except (SafetensorError, OSError, KeyError, msgspec.MsgspecError) as error:
        raise RunError(f"the checkpoint {path} cannot be read ({error}): remove the folder and run again") from None
