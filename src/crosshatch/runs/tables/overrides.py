"""`--set a.b=c`: changes to a config's tables before they are decoded."""

import datetime
import tomllib
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from typing import Any

from crosshatch.errors import ConfigError, CrosshatchError
from crosshatch.runs.tables.read_toml import read_toml


def overridden(tables: Mapping[str, Any], overrides: Sequence[str]) -> dict[str, Any]:
    """The tables as they are after one override after the other.

    A value is TOML, or a string where it is not; nothing after the `=` removes the key. A number in the path counts the
    entries of a list, from 0.

    >>> tables = {"run": {"rounds": 10, "seed": 1}, "federation": {"silos": [{"name": "bank"}]}}
    >>> overridden(tables, ["run.rounds=20", "run.seed=", "federation.silos.0.clients=3", "model.block=mlp"])
    {'run': {'rounds': 20}, 'federation': {'silos': [{'name': 'bank', 'clients': 3}]}, 'model': {'block': 'mlp'}}
    """
    changed = deepcopy(dict(tables))
    for text in overrides:
        path, equals, value = text.partition("=")
        keys = [key.strip() for key in path.split(".")]
        if not equals or len(keys) < 2 or not all(keys):
            raise ConfigError(f"--set {text}: write section.key=value, for example run.rounds=100")
        _set(changed, keys, value.strip(), f"--set {text}")
    return changed


def culprit(
    tables: Mapping[str, Any], overrides: Sequence[str], read: Callable[[dict[str, Any]], object], error: Exception
) -> str | None:
    """The override with which `read` began to refuse the tables with this error; None: it does so without any."""

    def refused(count: int) -> bool:
        try:
            read(overridden(tables, overrides[:count]))
        except CrosshatchError as found:
            return str(found) == str(error)
        return False

    first = next((count for count in range(len(overrides) + 1) if refused(count)), 0)
    return f"--set {overrides[first - 1]}" if first else None


def _set(tables: dict[str, Any], keys: list[str], value: str, place: str) -> None:
    inner: Any = tables
    for key in keys[:-1]:
        inner = inner.setdefault(key, {}) if isinstance(inner, dict) else _entry(inner, key, place)
    last = keys[-1]
    if isinstance(inner, list):
        _entry(inner, last, place)
        inner[int(last)] = parse_value(value)
    elif not isinstance(inner, dict):
        raise ConfigError(f"{place}: '{'.'.join(keys[:-1])}' is {inner!r}, not a table: set it as a whole")
    elif value:
        inner[last] = parse_value(value)
    else:
        inner.pop(last, None)


def _entry(found: object, key: str, place: str) -> Any:
    if not isinstance(found, list):
        raise ConfigError(f"{place}: '{key}' is looked for in {found!r}, which is not a table: set it as a whole")
    if not key.isdecimal() or int(key) >= len(found):
        raise ConfigError(f"{place}: '{key}' is not an entry of a list of {len(found)}: entries count from 0")
    return found[int(key)]


def flat_tables(tables: Mapping[str, Any], prefix: str = "", *, entries: bool = False) -> dict[str, Any]:
    """The settings by their keys with sections, as `--set` has them; lists are one value, or of tables `entries`."""
    flat: dict[str, Any] = {}
    for key, value in tables.items():
        if entries and isinstance(value, list) and any(isinstance(one, Mapping) for one in value):
            value = {str(number): one for number, one in enumerate(value)}
        inner = isinstance(value, Mapping)
        flat |= flat_tables(value, f"{prefix}{key}.", entries=entries) if inner else {f"{prefix}{key}": value}
    return flat


def parse_value(text: str) -> Any:
    """A value as TOML has it, or the text itself where it is not TOML."""
    try:
        read = read_toml(f"value = {text}")
    except tomllib.TOMLDecodeError:
        return text
    value = read.get("value")
    # No setting is a date, and a string with line breaks may hold more than one value.
    return text if len(read) > 1 or isinstance(value, datetime.date | datetime.time) else value
