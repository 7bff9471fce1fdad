"""Blocks from a user's own Python file, named `path/to/file.py:ClassName`."""

import inspect
from collections.abc import Mapping
from pathlib import Path

from torch import nn

from crosshatch.errors import ModelError
from crosshatch.own_parts import PartKind, building, find_part, short_name

BLOCK = PartKind("a block", "block", ModelError)


def load_block(
    name: str, input_shape: tuple[int, ...], outputs: int, arguments: Mapping[str, object], *, folder: Path
) -> nn.Module:
    """An instance of the class `name` speaks of; relative paths start in `folder`.

    The class is called with `arguments`, and with `input_shape` and `outputs` where its constructor takes them.
    """
    found = find_part(name, BLOCK, folder=folder)
    if not (isinstance(found, type) and issubclass(found, nn.Module)):
        raise ModelError(f"{name} is not a torch.nn.Module class: derive {short_name(name)} from torch.nn.Module")
    offered: dict[str, object] = {"input_shape": input_shape, "outputs": outputs}
    parameters = inspect.signature(found).parameters
    takes_all = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values())
    chosen = {key: value for key, value in offered.items() if takes_all or key in parameters}
    with building(name, BLOCK, f" for samples of shape {input_shape}"):
        return found(**{**chosen, **arguments})
