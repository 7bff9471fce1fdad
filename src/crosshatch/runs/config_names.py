"""Names in a config to classes: the one place that knows which algorithms and network models there are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from difflib import get_close_matches
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
from crosshatch.errors import ConfigError
from crosshatch.network import BandwidthNetwork, ConstantNetwork
from crosshatch.protocol.names import CODED
from crosshatch.runs.tables.decode import decode, show

if TYPE_CHECKING:  # codecs need torch, which takes seconds to import
    from crosshatch.codecs import AnyCodec

AnyAlgorithm = FedSGD | FedBCD | ABCD | TDCD | FedAvg | HSGD | JFL | Tiered | Central | STCD | MTCD | DCPA
AnyNetwork = ConstantNetwork | BandwidthNetwork

ALGORITHMS: dict[str, type[AnyAlgorithm]] = {
    "abcd": ABCD,
    "central": Central,
    "dcpa": DCPA,
    "fedavg": FedAvg,
    "fedbcd": FedBCD,
    "fedsgd": FedSGD,
    "hsgd": HSGD,
    "jfl": JFL,
    "mtcd": MTCD,
    "stcd": STCD,
    "tdcd": TDCD,
    "tiered": Tiered,
}
COMPRESSED = ("c-tdcd", "c-hsgd")
C_VFL = "topk(0.21875)"  # the HSGD paper's setting: log2(128) / 32 of the entries, as C-VFL's own code reads it
NETWORKS: dict[str, type[AnyNetwork]] = {"bandwidth": BandwidthNetwork, "constant": ConstantNetwork}


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
    return decode(table, kind, "algorithm", given), brought, {"auto": auto, "measure": measured}


def _left_open(table: Mapping[str, Any], word: str, keys: tuple[str, ...]) -> tuple[str, ...]:
    """The `keys` that are a word. P and Q go together: one that is left out is what the other is."""
    named = {key for key in keys if table.get(key) == word}
    if "global_steps" in keys and named & {"global_steps", "local_steps"}:
        named |= {key for key in ("global_steps", "local_steps") if key not in table}
    return tuple(key for key in keys if key in named)


def _refuse_other_words(table: Mapping[str, Any], kind: type[AnyAlgorithm]) -> None:
    """Where some words are allowed, a wrong one is told them."""
    for key in kind.auto:
        if isinstance(table.get(key), str):
            expected = "a number, a schedule's table" if key == "step_size" else "a whole number"
            words = ', "auto" or "measure"' if key in kind.measured() else ' or "auto"'
            raise ConfigError(f"algorithm.{key} = {show(table[key])}: expected {expected}{words}")


def _check_measured(table: Mapping[str, Any], auto: Sequence[str], measured: Sequence[str]) -> None:
    if not measured:
        return
    for key in ("global_steps", "local_steps"):
        if key in table and key not in measured:
            raise ConfigError(f'algorithm.{key} = {show(table[key])}: where P or Q is "measure" both are: leave it out')
    if auto:
        raise ConfigError(
            f'algorithm.{auto[0]} = "auto": where local_steps is "measure" it needs a value, for example 0.1'
        )


def decode_codecs(table: object, brought: Mapping[str, str]) -> dict[str, AnyCodec]:
    """Section [codecs]: for each exchange a codec such as `"ef(topk(0.01))"`; and those the algorithm brought along."""
    if not isinstance(table, Mapping):
        raise ConfigError(f'codecs = {show(table)}: expected a table, for example share = "topk(0.01)"')
    for exchange in table:
        if exchange not in CODED:
            close = get_close_matches(str(exchange), CODED, n=1)
            hint = f"did you mean '{close[0]}'? " if close else ""
            raise ConfigError(f"codecs.{exchange} is unknown: {hint}The exchanges are {', '.join(CODED)}")
    if not table and not brought:
        return {}
    from crosshatch.codecs import parse_codec

    return {
        exchange: parse_codec(codec, place=f"codecs.{exchange}") for exchange, codec in {**brought, **table}.items()
    }


def algorithm_name(algorithm: AnyAlgorithm) -> str:
    """Its name in a config."""
    return next(name for name, kind in ALGORITHMS.items() if isinstance(algorithm, kind))


def planned_names() -> tuple[str, ...]:
    """The names of the algorithms that theorems speak of."""
    names = {kind: name for name, kind in ALGORITHMS.items()}
    return tuple(names[kind] for kind in get_args(AnyAlgorithm) if kind.auto)


def settings_of(algorithm: AnyAlgorithm) -> dict[str, Any]:
    """The values of its keys in a config."""
    return {field.name: getattr(algorithm, field.name) for field in fields(algorithm)}


def algorithm_table(algorithm: AnyAlgorithm) -> dict[str, Any]:
    """The section that gives this algorithm, every key spelled out."""
    schedule = algorithm.step_size
    if isinstance(schedule, str):
        step_size: object = schedule
    elif isinstance(schedule, float | int):
        step_size = float(schedule)
    else:
        step_size = schedule.value if isinstance(schedule, schedules.Constant) else schedules.to_table(schedule)
    return {"name": algorithm_name(algorithm)} | settings_of(algorithm) | {"step_size": step_size}


def decode_network(table: object) -> tuple[AnyNetwork, bool]:
    """Section [network]: `kind`, and the fields of that class; whether the time of a local step is to be measured."""
    if isinstance(table, Mapping):
        table = {"kind": "constant"} | dict(table)
    kind: type[AnyNetwork] = _pick(table, "network", "kind", NETWORKS)
    assert isinstance(table, Mapping)
    measured = kind is BandwidthNetwork and table.get("step_seconds") == "measure"
    given: dict[str, Any] = {"kind": None} | ({"step_seconds": 0.0} if measured else {})
    return decode(table, kind, "network", given), measured


def network_table(network: AnyNetwork) -> dict[str, Any]:
    """The section that gives this network model, every key spelled out."""
    name = next(name for name, kind in NETWORKS.items() if isinstance(network, kind))
    return {"kind": name} | {field.name: getattr(network, field.name) for field in fields(network)}


def _pick(table: object, place: str, key: str, kinds: Mapping[str, type[Any]]) -> type[Any]:
    choices = ", ".join((*kinds, *(COMPRESSED if place == "algorithm" else ())))
    if not isinstance(table, Mapping):
        raise ConfigError(f"{place} = {show(table)}: expected a table of settings")
    if key not in table:
        raise ConfigError(f"{place}.{key} is missing: choose one of {choices}")
    name = table[key]
    if not isinstance(name, str) or name not in kinds:
        close = get_close_matches(str(name), kinds, n=1)
        hint = f"did you mean '{close[0]}'? " if close else ""
        raise ConfigError(f"{place}.{key} = {show(name)} is unknown: {hint}Choose one of {choices}")
    return kinds[name]
