"""Crosshatch trains one model on data split both ways: by features across silos, by samples across their clients.

The public names are listed in `__init__.pyi`. Each is loaded when it is first used, so that importing the package costs
next to nothing.
"""

_HOMES: dict[str, str] = {}  # the module of each name, once one was asked for


def __getattr__(name: str) -> object:
    from importlib import import_module

    if name == "__all__":
        return sorted(_homes())
    if name.startswith("_") or name not in _homes():
        raise AttributeError(f"module 'crosshatch' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(_homes())


def _homes() -> dict[str, str]:
    if not _HOMES:
        import re
        from pathlib import Path

        text = Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8")
        for room, several, one in re.findall(r"^from (\S+) import (?:\(([^)]*)\)|(.*))$", text, re.MULTILINE):
            _HOMES.update(dict.fromkeys(re.findall(r"\w+", several or one), room))
    return _HOMES
