"""Blocks from a user's own Python file, named `path/to/file.py:ClassName`."""

from __future__ import annotations

import importlib.util
import inspect
import sys
import zlib
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType

from torch import nn

from crosshatch.errors import ModelError, one_line


def load_block(
    name: str, input_shape: tuple[int, ...], outputs: int, arguments: Mapping[str, object], *, folder: Path
) -> nn.Module:
    """An instance of the class `name` speaks of; relative paths start in `folder`.

    The class is called with `arguments`, and with `input_shape` and `outputs` where its constructor takes them.
    Reading a file runs it, with this process's rights: it is the user's own.
    """
    path, _, class_name = name.rpartition(":")
    module = _load(folder / path)
    found = getattr(module, class_name, None)
    if found is None:
        raise ModelError(f"{path} has no class {class_name!r}: write block = '{path}:Name' with a class defined there")
    if not (isinstance(found, type) and issubclass(found, nn.Module)):
        raise ModelError(f"{name} is not a torch.nn.Module class: derive {class_name} from torch.nn.Module")
    offered: dict[str, object] = {"input_shape": input_shape, "outputs": outputs}
    parameters = inspect.signature(found).parameters
    takes_all = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values())
    chosen = {key: value for key, value in offered.items() if takes_all or key in parameters}
    try:
        return found(**{**chosen, **arguments})
    except Exception as error:  # whatever the user's constructor raises
        raise ModelError(
            f"{name} could not be built for samples of shape {input_shape}: {_kind_and_text(error)}"
        ) from error


def _load(path: Path) -> ModuleType:
    if not path.is_file():
        raise ModelError(f"the file {path} of a block does not exist: write block = 'path/to/file.py:ClassName'")
    # Two files of the same name in different folders are two modules.
    module_name = f"crosshatch_block_{path.stem}_{zlib.crc32(str(path.resolve()).encode()):08x}"
    spec = importlib.util.spec_from_file_location(module_name, path)
    if spec is None or spec.loader is None:
        raise ModelError(f"the file {path} of a block is not a Python file: its name must end in .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module  # dataclasses in the file look their module up there
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # whatever the user's file raises while it is read
        del sys.modules[module_name]
        raise ModelError(f"the file {path} of a block could not be read: {_kind_and_text(error)}") from error
    return module


def _kind_and_text(error: Exception) -> str:
    text = one_line(error)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
