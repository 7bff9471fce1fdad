"""Every section of a config, its keys, and what the code says about each of them: the type, and the default."""

from __future__ import annotations

import dataclasses
import math
from typing import Any, Literal, get_type_hints

from crosshatch.data.data_settings import CsvSettings, DataSettings, FederationSettings, SampleSplit, SiloSettings
from crosshatch.graphs import Graph
from crosshatch.network import Link
from crosshatch.privacy.operations import OperationSeconds
from crosshatch.privacy.privacy_settings import PrivacySettings
from crosshatch.protocol.names import CODED
from crosshatch.runs.config_names import ALGORITHMS, NETWORKS, OPTIMISERS
from crosshatch.runs.run_settings import EvaluateSettings, RunSettings
from crosshatch.runs.tables.decode import describe
from crosshatch.schedules import Schedule
from crosshatch.task.model_settings import BlockChanges, ModelSettings

CodecSettings = dataclasses.make_dataclass("CodecSettings", [(name, str | None, None) for name in CODED])
"""Section [codecs] has a key for each exchange; it is not a class of its own in the package."""

Row = tuple[str, str, str]
"""Key, type and default as the page about configs writes them."""

SECTIONS: dict[str, type[Any]] = {
    "[data]": DataSettings,
    "[data.csv]": CsvSettings,
    "[federation]": FederationSettings,
    "[[federation.silos]]": SiloSettings,
    "[federation.samples]": SampleSplit,
    "[model]": ModelSettings,
    "[model.blocks.SILO]": BlockChanges,
    **{f'[algorithm] name = "{name}"': kind for name, kind in ALGORITHMS.items()},
    "[algorithm.graph]": Graph,
    **{f'[optimiser] name = "{name}"': kind for name, kind in OPTIMISERS.items()},
    "[codecs]": CodecSettings,
    "[privacy]": PrivacySettings,
    "[privacy.seconds]": OperationSeconds,
    **{f'[network] kind = "{name}"': kind for name, kind in NETWORKS.items()},
    "[network.links]": Link,
    "[evaluate]": EvaluateSettings,
    "[run]": RunSettings,
}


def rows(kind: type[Any]) -> list[Row]:
    """The keys of a section in the order of its class.

    >>> rows(Link)[1]
    ('up', 'a number', '`inf`')
    """
    hints = get_type_hints(kind)
    if not dataclasses.is_dataclass(kind):  # a typed dict: what is given takes the place of something else
        return [(key, _type(hint), "that of `[model]`") for key, hint in hints.items()]
    return [(field.name, _type(hints[field.name]), _default(field)) for field in dataclasses.fields(kind)]


def _type(hint: Any) -> str:
    if hint == Schedule | float:
        return "a number or a table"
    if hint == Schedule | float | Literal["auto"]:
        return "a number or a table or 'auto'"
    return describe(hint)


def _default(field: dataclasses.Field[Any]) -> str:
    if dataclasses.is_dataclass(field.default):
        return "`{}`"
    if field.default is not dataclasses.MISSING:
        return _show(field.default)
    if field.default_factory is not dataclasses.MISSING:
        made = field.default_factory()
        return "`{}`" if dataclasses.is_dataclass(made) or made == {} else _show(made)
    return "required"


def _show(value: object) -> str:
    if value is None:
        return "left out"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, tuple):
        return f"`{list(value)}`"
    if isinstance(value, float) and math.isinf(value):
        return "`inf`"
    return f'`"{value}"`' if isinstance(value, str) else f"`{value}`"
