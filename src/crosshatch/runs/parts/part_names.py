"""Where the tables of a config name parts in files of a user's own."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from crosshatch.own_parts import moved, moved_in_text

Change = Callable[[str], str]
_MANY = "*"
# A star stands for every key of a table, or every entry of a list.
_PLACES = (
    ("model", "block"),
    ("model", "blocks", _MANY, "block"),
    ("model", "loss"),
    ("algorithm", "name"),
    ("algorithm", "step_size", "kind"),
    ("codecs", _MANY),
    ("evaluate", "metrics", _MANY),
)


def with_files(tables: Mapping[str, Any], change: Change) -> dict[str, Any]:
    """The same tables with the path of every part's file changed; whatever else is wrong in them stays as it is.

    >>> with_files({"algorithm": {"name": "celu.py:Celu"}, "run": {"rounds": 3}}, lambda path: f"parts/{path}")
    {'algorithm': {'name': 'parts/celu.py:Celu'}, 'run': {'rounds': 3}}
    """
    changed: Any = tables
    for place in _PLACES:
        changed = _at(changed, place, change, text=place[0] == "codecs")
    return dict(changed)


def files_named(tables: Mapping[str, Any]) -> tuple[Path, ...]:
    found: dict[Path, None] = {}

    def note(path: str) -> str:
        found[Path(path).resolve()] = None
        return path

    with_files(tables, note)
    return tuple(found)


def started_from(tables: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """The same tables with relative paths of parts' files starting in `folder`."""
    return with_files(tables, lambda path: str(folder / path))


def _at(value: Any, place: tuple[str, ...], change: Change, *, text: bool) -> Any:
    if not place:
        return _codec(value, change) if text else _name(value, change)
    key, rest = place[0], place[1:]
    if isinstance(value, Mapping):
        keys = value.keys() if key == _MANY else {key} & value.keys()
        return {**value, **{one: _at(value[one], rest, change, text=text) for one in keys}}
    if isinstance(value, list | tuple) and key == _MANY:
        return [_at(one, rest, change, text=text) for one in value]
    return value


def _name(value: Any, change: Change) -> Any:
    return moved(value, change) if isinstance(value, str) else value


def _codec(value: Any, change: Change) -> Any:
    """A codec is text, a list of codecs, or a table with its kind and perhaps a codec within."""
    if isinstance(value, str):
        return moved_in_text(value, change)
    if isinstance(value, list | tuple):
        return [_codec(one, change) for one in value]
    if isinstance(value, Mapping):
        return {
            key: _name(one, change) if key == "kind" else _codec(one, change) if key == "codec" else one
            for key, one in value.items()
        }
    return value
