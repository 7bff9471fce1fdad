"""Algorithms from a user's own file: checked, and made to declare what configs and engines ask for."""

from dataclasses import fields
from typing import Any

from crosshatch.errors import ConfigError
from crosshatch.exchanges import declaring
from crosshatch.own_parts import PartKind, building, find_settings_class, name_of, remember_name, require_methods
from crosshatch.topology import Topology

ALGORITHM = PartKind("an algorithm", "algorithm.name")
_NEEDED = ("local_steps", "step_size", "topology")
_HELP = "see docs/howto/own-algorithm.md"


def find_algorithm(name: str) -> type[Any]:
    """The class that `name` speaks of; what it does not declare is declared as usual."""
    found = find_settings_class(name, ALGORITHM)
    memory = ("memory",) if getattr(found, "remembers", False) else ()
    require_methods(found, name, ALGORITHM, {"run_round": ("fed", "blocks", "r", *memory)})
    known = {field.name for field in fields(found)}
    for needed in _NEEDED:
        if needed not in known and (needed == "step_size" or not hasattr(found, needed)):
            sort = "a property" if needed == "topology" else "a field"
            raise ConfigError(f"{name} has no {needed}: {ALGORITHM.what} needs it as {sort}, {_HELP}")
    with building(name, ALGORITHM, done="read, a type of its fields is not known"):
        made = declaring(found)  # type: ignore[arg-type]  # a class is hashable
    remember_name(made, name_of(found, ALGORITHM.what))
    return made


def check_algorithm(algorithm: Any) -> None:
    """Refuse settings by which an algorithm of a user's own has no tiers."""
    name = name_of(type(algorithm), "the algorithm")
    with building(name, ALGORITHM, done="asked for its topology"):
        topology = algorithm.topology
    if not isinstance(topology, Topology):
        raise ConfigError(f"topology of {name} is {topology!r}: return Topology.parse('V(5)'), for example, {_HELP}")
