"""Names in a config to classes: the one place that knows which algorithms and network models there are.

An algorithm from a user's own file is checked here, and made to declare what configs and engines ask for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from crosshatch import schedules
from crosshatch.algorithms.abcd import ABCD
from crosshatch.algorithms.central import Central
from crosshatch.algorithms.dcpa import DCPA
from crosshatch.algorithms.fedavg import FedAvg
from crosshatch.algorithms.fedbcd import FedBCD
from crosshatch.algorithms.fedsgd import FedSGD
from crosshatch.algorithms.hsgd import HSGD
from crosshatch.algorithms.jfl import JFL
from crosshatch.algorithms.mtcd import MTCD, STCD
from crosshatch.algorithms.tdcd import TDCD
from crosshatch.algorithms.tiered import Tiered
from crosshatch.errors import ConfigError, meant
from crosshatch.exchanges import declaring
from crosshatch.network import BandwidthNetwork, ConstantNetwork, SeveralNetworks
from crosshatch.own_parts import (
    PartKind,
    building,
    find_settings_class,
    is_own,
    moved,
    name_of,
    remember_name,
    require_methods,
)
from crosshatch.protocol.names import CODED
from crosshatch.runs.run_settings import EvaluateSettings
from crosshatch.runs.tables.decode import decode, show
from crosshatch.task.optimisers import Adam, Momentum, Optimiser
from crosshatch.task.own_metric import find_directions
from crosshatch.topology import Topology

if TYPE_CHECKING:  # codecs need torch, which takes seconds to import
    from crosshatch.codecs import AnyCodec

ALGORITHM = PartKind("an algorithm", "algorithm.name")
_NEEDED = ("local_steps", "step_size", "topology")
_HELP = "see docs/howto/own-algorithm.md"
AnyAlgorithm = FedSGD | FedBCD | ABCD | TDCD | FedAvg | HSGD | JFL | Tiered | Central | STCD | MTCD | DCPA
AnyNetwork = ConstantNetwork | BandwidthNetwork | SeveralNetworks
_BY_NAME = {kind.__name__.lower(): kind for kind in get_args(AnyAlgorithm)}
ALGORITHMS: dict[str, type[AnyAlgorithm]] = {name: _BY_NAME[name] for name in sorted(_BY_NAME)}
COMPRESSED = ("c-tdcd", "c-hsgd")
C_VFL = "topk(0.21875)"  # the HSGD paper's setting: log2(128) / 32 of the entries, as C-VFL's own code reads it
PLAIN = "sgd"
OPTIMISERS: dict[str, type[Optimiser]] = {kind.name: kind for kind in (Momentum, Adam)}
OneNetwork = ConstantNetwork | BandwidthNetwork
NETWORKS: dict[str, type[OneNetwork]] = {"bandwidth": BandwidthNetwork, "constant": ConstantNetwork}


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


def decode_algorithm(table: object) -> tuple[AnyAlgorithm, dict[str, str], dict[str, tuple[str, ...]]]:
    """Section [algorithm]: `name`, and the fields of that class; `step_size` is a number or a schedule's table.

    Names that begin with `c-` bring codecs along, as [codecs] would name them. Also returns the keys that are "auto"
    and "measure", with something harmless in their place: one step, or the usual step size.
    """
    compressed = isinstance(table, Mapping) and table.get("name") in COMPRESSED
    if compressed:
        assert isinstance(table, Mapping)
        table = {**table, "name": str(table["name"]).removeprefix("c-")}
    kind: type[AnyAlgorithm] = _pick(table, "algorithm", "name", ALGORITHMS)
    assert isinstance(table, Mapping)
    own = is_own(table["name"])
    auto, measured = _left_open(table, "auto", kind.auto), _left_open(table, "measure", kind.measured())
    _check_measured(table, auto, measured)
    given: dict[str, Any] = {"name": None} | {key: 1 for key in (*auto, *measured) if key != "step_size"}
    if "global_steps" in auto and "local_steps" not in auto:
        given["global_steps"] = table["local_steps"]  # P = Q, a multiple of Q
    table = {key: value for key, value in table.items() if key not in (*auto, *measured)}
    _refuse_other_words(table, kind)
    as_it_is = not kind.has_schedule or (kind.finds_step and table.get("step_size") == "auto")
    if "step_size" in table and not as_it_is:
        given["step_size"] = schedules.parse_schedule(table["step_size"])
    brought = dict.fromkeys(("share", "head"), C_VFL) if compressed else {}
    with building(table["name"], ALGORITHM) if own else nullcontext():
        algorithm = decode(table, kind, "algorithm", given)
    if own:  # refuse settings by which it has no tiers
        name = _whole_name(algorithm)
        with building(name, ALGORITHM, done="asked for its topology"):
            topology = algorithm.topology
        if not isinstance(topology, Topology):
            remedy = f"return Topology.parse('V(5)'), for example, {_HELP}"
            raise ConfigError(f"topology of {name} is {topology!r}: {remedy}")
    return algorithm, brought, {"auto": auto, "measure": measured}


def _left_open(table: Mapping[str, Any], word: str, keys: tuple[str, ...]) -> tuple[str, ...]:
    """The `keys` that are a word. P and Q go together: one that is left out is what the other is."""
    named = {key for key in keys if table.get(key) == word}
    if "global_steps" in keys and named & {"global_steps", "local_steps"}:
        named |= {key for key in ("global_steps", "local_steps") if key not in table}
    return tuple(key for key in keys if key in named)


def _refuse_other_words(table: Mapping[str, Any], kind: type[AnyAlgorithm]) -> None:
    """Where some words are allowed, a wrong one is told them."""
    for key in dict.fromkeys((*kind.auto, *kind.measured())):
        if isinstance(table.get(key), str):
            expected = "a number, a schedule's table" if key == "step_size" else "a whole number"
            words = [f'"{word}"' for word, keys in (("auto", kind.auto), ("measure", kind.measured())) if key in keys]
            listed = ", ".join((expected, *words[:-1]))
            raise ConfigError(f"algorithm.{key} = {show(table[key])}: expected {listed} or {words[-1]}")


def _check_measured(table: Mapping[str, Any], auto: Sequence[str], measured: Sequence[str]) -> None:
    for key in ("global_steps", "local_steps") if {"global_steps", "local_steps"} & {*measured} else ():
        if key in table and key not in measured:
            raise ConfigError(f'algorithm.{key} = {show(table[key])}: where P or Q is "measure" both are: leave it out')
    if measured and auto:
        raise ConfigError(
            f'algorithm.{auto[0]} = "auto": where {measured[-1]} is "measure" it needs a value, or "measure" as well'
        )


def decode_codecs(table: object, brought: Mapping[str, str]) -> dict[str, AnyCodec]:
    """Section [codecs]: for each exchange a codec such as `"ef(topk(0.01))"`; and those the algorithm brought along."""
    if not isinstance(table, Mapping):
        raise ConfigError(f'codecs = {show(table)}: expected a table, for example share = "topk(0.01)"')
    for exchange in table:
        if exchange not in CODED:
            hint = meant(exchange, CODED)
            raise ConfigError(f"codecs.{exchange} is unknown: {hint}The exchanges are {', '.join(CODED)}")
    if not table and not brought:
        return {}
    from crosshatch.codecs import parse_codec

    return {
        exchange: parse_codec(codec, place=f"codecs.{exchange}") for exchange, codec in {**brought, **table}.items()
    }


def codecs_table(codecs: Mapping[str, AnyCodec]) -> dict[str, str]:
    if not codecs:
        return {}
    from crosshatch.codecs import spell

    return {exchange: spell(codec) for exchange, codec in codecs.items()}


def decode_evaluate(table: object) -> EvaluateSettings:
    """Section [evaluate], with the direction of every metric of a user's own."""
    if not isinstance(table, Mapping) or not isinstance(table.get("metrics"), list | tuple):
        return decode(table, EvaluateSettings, "evaluate")
    known = decode({"higher_is_better": table.get("higher_is_better", {})}, EvaluateSettings, "evaluate")
    found = find_directions([name for name in table["metrics"] if is_own(name)], known.higher_is_better)
    return decode(table, EvaluateSettings, "evaluate", {"higher_is_better": found})


def algorithm_name(algorithm: AnyAlgorithm) -> str:
    """Its name in a config; that of a user's own without the folders of its file."""
    return moved(_whole_name(algorithm), lambda path: Path(path).name)


def _whole_name(algorithm: AnyAlgorithm) -> str:
    named = next((name for name, kind in ALGORITHMS.items() if type(algorithm) is kind), None)
    return name_of(type(algorithm), "the algorithm") if named is None else named


def planned_names() -> tuple[str, ...]:
    """The names of the algorithms that theorems speak of."""
    names = {kind: name for name, kind in ALGORITHMS.items()}
    return tuple(names[kind] for kind in get_args(AnyAlgorithm) if kind.auto)


def settings_of(part: Any) -> dict[str, Any]:
    """The values of the keys in a config of an algorithm, an optimiser or a network."""
    return {field.name: getattr(part, field.name) for field in fields(part)}


def algorithm_table(algorithm: AnyAlgorithm) -> dict[str, Any]:
    """The section that gives this algorithm, every key spelled out."""
    schedule = algorithm.step_size
    if isinstance(schedule, str):
        step_size: object = schedule
    elif isinstance(schedule, float | int):
        step_size = float(schedule)
    else:
        step_size = schedule.value if isinstance(schedule, schedules.Constant) else schedules.to_table(schedule)
    return {"name": _whole_name(algorithm)} | settings_of(algorithm) | {"step_size": step_size}


def decode_optimiser(table: object, auto: Sequence[str]) -> Optimiser | None:
    """Section [optimiser]: `name`, and the fields of that class; None for plain steps.

    `auto` are the keys of [algorithm] that theory is to choose, which speaks of plain steps alone.
    """
    if isinstance(table, Mapping) and table.get("name", PLAIN) == PLAIN:
        if others := [key for key in table if key != "name"]:
            raise ConfigError(
                f"optimiser.{others[0]}: plain steps (optimiser.name = '{PLAIN}') have no settings: leave it out, or "
                f"set optimiser.name to one of {', '.join(OPTIMISERS)}"
            )
        return None
    kind: type[Optimiser] = _pick(table, "optimiser", "name", {PLAIN: Momentum, **OPTIMISERS})
    assert isinstance(table, Mapping)
    if auto:
        raise ConfigError(
            f"algorithm.{auto[0]} = 'auto' with optimiser.name = '{kind.name}': the theorems choose for plain steps: "
            f"give a value, or set optimiser.name = '{PLAIN}'"
        )
    return decode(table, kind, "optimiser", {"name": None})


def decode_network(table: object) -> tuple[AnyNetwork, bool]:
    """Section [network]: `kind`, and the fields of that class; whether the time of a local step is to be measured.

    As a list, [[network]], it has several, and the time of a local step is a number in each.
    """
    if isinstance(table, list):
        found = [decode_network(one) for one in table]
        if any(measured for _, measured in found):
            raise ConfigError('network.step_seconds = "measure" in a list of networks: give each a number')
        return SeveralNetworks(tuple(one for one, _ in found)), False  # type: ignore[misc]
    if isinstance(table, Mapping):
        table = {"kind": "constant"} | dict(table)
    kind: type[OneNetwork] = _pick(table, "network", "kind", NETWORKS)
    assert isinstance(table, Mapping)
    measured = kind is BandwidthNetwork and table.get("step_seconds") == "measure"
    given: dict[str, Any] = {"kind": None} | ({"step_seconds": 0.0} if measured else {})
    return decode(table, kind, "network", given), measured


def network_table(network: AnyNetwork) -> dict[str, Any] | list[dict[str, Any]]:
    if isinstance(network, SeveralNetworks):
        return [table for one in network.networks if isinstance(table := network_table(one), dict)]
    name = next(name for name, kind in NETWORKS.items() if isinstance(network, kind))
    return {"kind": name} | settings_of(network)


def _pick(table: object, place: str, key: str, kinds: Mapping[str, type[Any]]) -> type[Any]:
    known = (*kinds, *(COMPRESSED if place == "algorithm" else ()))
    choices = ", ".join(known)
    if not isinstance(table, Mapping):
        raise ConfigError(f"{place} = {show(table)}: expected a table of settings")
    if key not in table:
        raise ConfigError(f"{place}.{key} is missing: choose one of {choices}")
    name = table[key]
    if place == "algorithm" and is_own(name):
        return find_algorithm(name)
    if not isinstance(name, str) or name not in kinds:
        own = ", or name your own class as path/to/file.py:ClassName" if place == "algorithm" else ""
        raise ConfigError(f"{place}.{key} = {show(name)} is unknown: {meant(name, known)}Choose one of {choices}{own}")
    return kinds[name]
