"""Values as plain data and back: what a checkpoint or a stored state can hold without pickle.

What is plain (None, numbers, strings) stays as it is, tensors go into a list of their own, and anything else is
written as its kind and what it is made of: tuples, lists, dicts, frozen sets, arrays, and the dataclasses that the
reader names. Reading makes these kinds and no others.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any

import numpy as np
import torch
from torch import Tensor

from crosshatch.errors import ConfigError, RunError

Kinds = Sequence[type]
_BUILT_IN: Mapping[str, tuple[type, Callable[[Any], Sequence[Any]], Callable[[Sequence[Any]], Any]]] = {
    "tuple": (tuple, tuple, tuple),
    "list": (list, list, list),
    "dict": (dict, lambda table: tuple(table.items()), dict),
    "frozenset": (frozenset, sorted, frozenset),
}


def take_apart(value: Any, kinds: Kinds, tensors: list[Tensor], whose: str) -> Any:
    """The value as plain data; its tensors, each once, are added to `tensors`. An error says `whose` value it is.

    >>> found: list[Tensor] = []
    >>> take_apart({"a": (torch.ones(1), 2)}, (), found, "the memory"), len(found)
    ({'dict': [{'tuple': ['a', {'tuple': [{'tensor': 0}, 2]}]}]}, 1)
    """
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.ndarray):
        return {"array": take_apart(torch.from_numpy(value), kinds, tensors, whose)}
    if isinstance(value, Tensor):
        place = next((i for i, one in enumerate(tensors) if one is value), len(tensors))
        if place == len(tensors):
            tensors.append(value)
        return {"tensor": place}
    name, kind = type(value).__name__, type(value)
    if kind in kinds:
        parts: Sequence[Any] = [getattr(value, field.name) for field in fields(kind)]
    elif name in _BUILT_IN and kind is _BUILT_IN[name][0]:
        parts = _BUILT_IN[name][1](value)
    else:
        raise ConfigError(
            f"{whose} holds a {name}: it may hold batches, what is frozen, tensors, arrays, numbers, strings and None, "
            "in tuples, lists and dicts"
        )
    return {name: [take_apart(one, kinds, tensors, whose) for one in parts]}


def put_together(written: Any, kinds: Kinds, tensors: Sequence[Tensor]) -> Any:
    """The value again.

    >>> put_together({"tuple": ["a", {"tensor": 0}]}, (), [torch.ones(1)])
    ('a', tensor([1.]))
    """
    if not isinstance(written, dict):
        return written
    try:
        ((name, content),) = written.items()
        if name == "tensor":
            return tensors[content]
        if name == "array":
            return put_together(content, kinds, tensors).cpu().numpy()
        parts = [put_together(one, kinds, tensors) for one in content]
        if name in _BUILT_IN:
            return _BUILT_IN[name][2](parts)
        return {kind.__name__: kind for kind in kinds}[name](*parts)
    except (ValueError, TypeError, IndexError, KeyError, AttributeError) as error:
        raise RunError(f"{written!r:.60}: no kind of value that is known here ({error!r:.80})") from None
