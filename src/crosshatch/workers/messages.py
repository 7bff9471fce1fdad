"""Requests as bytes: the task stays away, since workers have it, and what all are told is put aside to be sent once."""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from crosshatch.task.task import Task
from crosshatch.workers.requests import Request

Array = npt.NDArray[np.generic]
_TASK = "task"


class _Writer(pickle.Pickler):
    def __init__(self, file: io.BytesIO, common: Mapping[int, int]) -> None:
        super().__init__(file, protocol=5)
        self._common, self.mentioned = common, set[int]()

    def persistent_id(self, value: Any) -> str | int | None:
        if isinstance(value, Task):
            return _TASK
        number = self._common.get(id(value)) if isinstance(value, Tensor) else None
        self.mentioned |= set() if number is None else {number}
        return number

    def reducer_override(self, value: Any) -> Any:
        # as an array: a tensor that is part of another would take all of it along
        return (torch.tensor, (value.numpy(),)) if isinstance(value, Tensor) else NotImplemented


class _Reader(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, task: Task, common: Callable[[int], Tensor]) -> None:
        super().__init__(file)
        self._task, self._common = task, common

    def persistent_load(self, name: Any) -> Any:
        return self._task if name == _TASK else self._common(name)


def write(requests: Sequence[Request], common: Mapping[int, int]) -> tuple[bytes, set[int]]:
    """Requests as bytes, and the numbers of the tensors in common that they mention; `common` has these by identity."""
    file = io.BytesIO()
    writer = _Writer(file, common)
    writer.dump(list(requests))
    return file.getvalue(), writer.mentioned


def read(written: bytes, task: Task, common: Callable[[int], Tensor]) -> list[Request]:
    """The requests again; `common` gives the tensor of a number."""
    found: list[Request] = _Reader(io.BytesIO(written), task, common).load()
    return found
