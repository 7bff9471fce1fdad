"""What an algorithm carries from round to round besides the blocks, as tensors for a checkpoint and back.

A memory is a tuple of the federation's batches and what is frozen, of tensors and plain values, and of tuples, lists
and tables of all these. Its structure is written as JSON, as `crosshatch.plain_data` says.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

import torch
from torch import Tensor

from crosshatch.exchanges import Memory
from crosshatch.plain_data import put_together, take_apart
from crosshatch.simulator.vertical.batch import Batch, Holdings
from crosshatch.simulator.vertical.sharing import Frozen, Sent

_STRUCTURE, _TENSOR = "memory.structure", "memory.tensor."
_KINDS = (Batch, Holdings, Frozen, Sent)


def pack(memory: Memory) -> dict[str, Tensor]:
    """As tensors with memory of their own; none where there is nothing to keep."""
    if not memory:
        return {}
    found: list[Tensor] = []
    text = json.dumps(take_apart(memory, _KINDS, found, "the algorithm's memory")).encode()
    structure = torch.frombuffer(bytearray(text), dtype=torch.uint8)
    return {_STRUCTURE: structure} | {f"{_TENSOR}{i}": tensor.clone() for i, tensor in enumerate(found)}


def unpack(tensors: Mapping[str, Tensor], device: torch.device) -> Memory:
    """Back from a checkpoint's tensors."""
    if _STRUCTURE not in tensors:
        return ()
    count = sum(name.startswith(_TENSOR) for name in tensors)
    read = [tensors[f"{_TENSOR}{i}"].to(device).clone() for i in range(count)]
    memory: Memory = put_together(json.loads(bytes(tensors[_STRUCTURE].tolist())), _KINDS, read)
    return memory
