"""What an algorithm carries from round to round besides the blocks, as tensors for a checkpoint and back.

A memory is a tuple of the federation's batches and what is frozen, of tensors and plain values, and of tuples, lists
and tables of all these. Its structure is written as JSON: what is plain as it is, anything else as its kind and what it
is made of.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any

import numpy as np
import torch
from torch import Tensor

from crosshatch.errors import ConfigError
from crosshatch.exchanges import Memory
from crosshatch.simulator.vertical.batch import Batch, Holdings
from crosshatch.simulator.vertical.sharing import Frozen, Sent

_STRUCTURE, _TENSOR = "memory.structure", "memory.tensor."


def pack(memory: Memory) -> dict[str, Tensor]:
    """As tensors with memory of their own; none where there is nothing to keep."""
    if not memory:
        return {}
    found: list[Tensor] = []
    text = json.dumps(_write(memory, found)).encode()
    structure = torch.frombuffer(bytearray(text), dtype=torch.uint8)
    return {_STRUCTURE: structure} | {f"{_TENSOR}{i}": tensor.clone() for i, tensor in enumerate(found)}


def unpack(tensors: Mapping[str, Tensor], device: torch.device) -> Memory:
    """Back from a checkpoint's tensors."""
    if _STRUCTURE not in tensors:
        return ()
    read = {name: tensor.to(device).clone() for name, tensor in tensors.items() if name.startswith(_TENSOR)}
    memory: Memory = _read(json.loads(bytes(tensors[_STRUCTURE].tolist())), read)
    return memory


# How each kind is taken apart and put together again.
_KINDS = (Batch, Holdings, Frozen, Sent)
_APART: Mapping[type, Callable[[Any], tuple[Any, ...]]] = {
    **dict.fromkeys(_KINDS, lambda value: tuple(getattr(value, field.name) for field in fields(value))),
    tuple: lambda values: values,
    list: tuple,
    dict: lambda table: tuple(table.items()),
}
_TOGETHER: Mapping[str, Callable[..., Any]] = {
    **{kind.__name__: kind for kind in _KINDS},
    "tuple": lambda *values: values,
    "list": lambda *values: list(values),
    "dict": lambda *items: dict(items),
}


def _write(value: Any, found: list[Tensor]) -> Any:
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.ndarray):
        return {"array": _write(torch.from_numpy(value), found)}
    if isinstance(value, Tensor):
        place = next((i for i, one in enumerate(found) if one is value), len(found))
        if place == len(found):
            found.append(value)
        return {"tensor": place}
    if type(value) not in _APART:
        raise ConfigError(
            f"the algorithm's memory holds a {type(value).__name__}: it may hold batches, what is frozen, tensors, "
            "arrays, numbers, strings and None, in tuples, lists and dicts"
        )
    return {type(value).__name__: [_write(one, found) for one in _APART[type(value)](value)]}


def _read(written: Any, tensors: Mapping[str, Tensor]) -> Any:
    if not isinstance(written, dict):
        return written
    ((kind, content),) = written.items()
    if kind == "tensor":
        return tensors[f"{_TENSOR}{content}"]
    if kind == "array":
        return _read(content, tensors).cpu().numpy()
    return _TOGETHER[kind](*(_read(one, tensors) for one in content))
