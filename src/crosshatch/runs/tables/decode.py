"""TOML tables to settings, strictly: every refusal names the key, its value and what is allowed.

Settings are frozen dataclasses or typed dicts, possibly nested in lists and tables; their type hints are the rules.
"""

import dataclasses
import types
from collections.abc import Mapping, Sequence
from functools import cache
from types import MappingProxyType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints, is_typeddict

import msgspec

from crosshatch.errors import ConfigError, meant

T = TypeVar("T")
# What settings are called in other libraries.
_ELSEWHERE = {
    "lr": "step_size",
    "learning_rate": "step_size",
    "eta": "step_size",
    "q": "local_steps",
    "local_epochs": "local_steps",
    "p": "global_steps",
    "batch": "batch_size",
    "epochs": "rounds",
    "iterations": "rounds",
    "random_state": "seed",
    "weight_decay": "l2",
    "target": "label",
}
_ONE = {int: "a whole number", float: "a number", str: "a string", bool: "true or false", object: "a value"}
_MANY = {int: "whole numbers", float: "numbers", str: "strings", bool: "booleans"}


def decode(table: object, kind: type[T], place: str, given: Mapping[str, Any] = MappingProxyType({})) -> T:
    """A dataclass from a table; `place` is the table's name in the config, for example `federation.silos[0]`.

    Keys in `given` are known already: the table may have them, but they are not read from it.
    """
    if not isinstance(table, Mapping):
        raise ConfigError(f"{place} = {show(table)}: expected a table of settings")
    hints = _hints(kind)  # type: ignore[arg-type]  # a class is hashable
    for key in table:
        if key not in hints and key not in given:
            raise unknown_key(str(key), list(hints), place)
    if dataclasses.is_dataclass(kind):
        for field in dataclasses.fields(kind):
            required = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
            if required and field.name not in table and field.name not in given:
                raise ConfigError(f"{place}.{field.name} is missing: give {describe(hints[field.name])}")
    read = {key: _decode_value(table[key], hints[key], f"{place}.{key}") for key in table if key not in given}
    return kind(**read, **{key: value for key, value in given.items() if key in hints})


def unknown_key(key: str, allowed: Sequence[str], place: str) -> ConfigError:
    other = _ELSEWHERE.get(key.lower())
    hint = f"did you mean '{other}'? " if other in allowed else meant(key, allowed)
    return ConfigError(f"unknown key {place}.{key}: {hint}Allowed are {', '.join(sorted(allowed))}")


def show(value: object) -> str:
    """A value as people wrote it, cut short."""
    text = str(value).lower() if isinstance(value, bool) else repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def describe(hint: Any) -> str:
    """What a type hint asks for, in words.

    >>> describe(int | None), describe(tuple[str, ...]), describe(Literal["sum", "head"])
    ('a whole number', 'a list of strings', "'sum' or 'head'")
    """
    return " or ".join(_describe(member) for member in _members(hint))


def _describe(member: Any) -> str:
    if get_origin(member) is Literal:
        return " or ".join(repr(value) for value in get_args(member))
    if get_origin(member) is tuple:
        first, *rest = get_args(member)
        count = "" if rest == [...] else f"{len(rest) + 1} "
        return f"a list of {count}{_MANY.get(first, 'tables' if _is_settings(first) else 'values')}"
    return _ONE.get(member, "a table of settings")


def _decode_value(value: object, hint: Any, place: str) -> Any:
    plain = []
    for member in _members(hint):
        of_tuple = get_origin(member) is tuple
        inner: Any = get_args(member)[0 if of_tuple else -1] if get_args(member) else None
        if _is_settings(member):
            if isinstance(value, Mapping):
                return decode(value, member, place)
        elif _is_settings(inner):
            if of_tuple and isinstance(value, list):
                return tuple(decode(item, inner, f"{place}[{i}]") for i, item in enumerate(value))
            if not of_tuple and isinstance(value, Mapping):
                return {str(key): decode(item, inner, f"{place}.{key}") for key, item in value.items()}
        else:
            plain.append(member)
    try:
        if plain:
            return msgspec.convert(value, Union[tuple(plain)])  # noqa: UP007 - members known at run time only
    except msgspec.ValidationError:
        pass
    raise ConfigError(f"{place} = {show(value)}: expected {describe(hint)}")


def _members(hint: Any) -> list[Any]:
    """The members of a union but None, which TOML cannot write: a key is left out instead."""
    if get_origin(hint) in (Union, types.UnionType):
        return [inner for member in get_args(hint) for inner in _members(member)]
    return [] if hint is type(None) else [hint]


def _is_settings(hint: Any) -> bool:
    return dataclasses.is_dataclass(hint) or is_typeddict(hint)


@cache
def _hints(kind: type[Any]) -> dict[str, Any]:
    hints = get_type_hints(kind)
    if dataclasses.is_dataclass(kind):
        return {field.name: hints[field.name] for field in dataclasses.fields(kind)}
    return hints
