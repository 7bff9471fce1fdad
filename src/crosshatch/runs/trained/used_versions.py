"""Whether a model is put to work with the versions that it was made with."""

import platform
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version

import numpy as np
import torch

_DECIDING = ("crosshatch", "torch")  # numpy and Python have no say in a forward pass


def versions() -> dict[str, str]:
    try:
        own = version("crosshatch")
    except PackageNotFoundError:  # run from the source without being installed
        own = "unknown"
    return {
        "crosshatch": own,
        "torch": str(torch.__version__),
        "numpy": np.__version__,
        "python": platform.python_version(),
    }


def other_versions(trained: Mapping[str, str]) -> str:
    """A line on versions that differ from those of the training; empty where none does.

    >>> other_versions(versions())
    ''
    >>> other_versions({"torch": "1.0"}).partition(",")[0]
    'it was trained with torch 1.0'
    """
    here = versions()
    differing = [name for name in _DECIDING if name in trained and trained[name] != here[name]]
    if not differing:
        return ""
    then, now = (", ".join(f"{name} {those[name]}" for name in differing) for those in (trained, here))
    return f"it was trained with {then}, this is {now}: scores may differ in their last digits"
