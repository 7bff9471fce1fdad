"""A config: read from TOML, checked whole, and written back with everything spelled out.

Paths in a config are relative to its file; written back they are absolute, so that a run's `config.toml` runs from
anywhere. The data folder is a setting of the machine and not part of a config.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from crosshatch.data.data_settings import DataSettings, FederationSettings, SiloSettings
from crosshatch.errors import ConfigError, CrosshatchError, meant, saying_where
from crosshatch.privacy.privacy_settings import PrivacySettings
from crosshatch.runs.config_names import (
    PLAIN,
    AnyAlgorithm,
    AnyNetwork,
    algorithm_table,
    codecs_table,
    decode_algorithm,
    decode_codecs,
    decode_evaluate,
    decode_network,
    decode_optimiser,
    network_table,
    settings_of,
)
from crosshatch.runs.own_parts.part_files import PartFiles, started_from, with_files
from crosshatch.runs.run_settings import EvaluateSettings, RunSettings, is_name, require_evaluations
from crosshatch.runs.tables.decode import decode
from crosshatch.runs.tables.overrides import culprit, flat_tables, overridden
from crosshatch.runs.tables.read_toml import read_toml
from crosshatch.task.model_settings import ModelSettings
from crosshatch.task.optimisers import Optimiser

if TYPE_CHECKING:  # codecs need torch, which takes seconds to import
    from crosshatch.codecs import AnyCodec

SECTIONS = ("data", "federation", "model", "algorithm", "optimiser", "codecs", "privacy", "network", "evaluate", "run")


@dataclass(frozen=True)
class Config:
    """All sections. `measure_step`: the time of a local step is to be measured when the run starts.

    `optimiser`: None stands for plain steps. `auto`: keys of [algorithm] that are "auto", to be chosen from estimates
    before training. `measured`: those that are "measure", to be chosen by trials.
    """

    data: DataSettings
    federation: FederationSettings
    model: ModelSettings
    algorithm: AnyAlgorithm
    optimiser: Optimiser | None
    codecs: Mapping[str, AnyCodec]
    network: AnyNetwork
    evaluate: EvaluateSettings
    run: RunSettings
    privacy: PrivacySettings = PrivacySettings()
    measure_step: bool = False
    auto: tuple[str, ...] = ()
    measured: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The run's name; settled once a config was read."""
        assert self.run.name is not None
        return self.run.name

    @property
    def has_validation_rows(self) -> bool:
        """Whether some rows are for choosing."""
        silos = self.federation.silos
        files = isinstance(silos, tuple) and any(silo.validation_path is not None for silo in silos)
        return files or self.data.validation is not None


def read_config(path: Path | str, overrides: Sequence[str] = (), *, name: str | None = None) -> Config:
    """The config in a file, changed by `--set` overrides; a ConfigError names file or override, key and remedy.

    A run that its config does not name is called `name`, or like the file.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "wine.toml")
    ...     written = path.write_text('data = {name = "wine"}')
    ...     config = read_config(path, ["algorithm.name=fedbcd", "run.rounds=20"])
    >>> config.name, config.algorithm.local_steps, config.run.rounds
    ('wine', 5, 20)
    """
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8-sig")  # some editors begin a file with a mark
        tables = read_toml(text)
    except FileNotFoundError:
        raise ConfigError(f"no config file {path}: check the path, or copy one from examples/") from None
    except IsADirectoryError:
        raise ConfigError(f"{path} is a folder, not a config file: a run's config is {path / 'config.toml'}") from None
    except tomllib.TOMLDecodeError as error:
        if "\0" in text:
            raise ConfigError(f"{path} is not a text file: a config is a TOML file in UTF-8, see examples/") from None
        raise ConfigError(f"{path} is not TOML: {error}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{path} is not a text file: a config is a TOML file in UTF-8, see examples/") from None
    except OSError as error:
        raise ConfigError(f"{path} cannot be read ({error.strerror}): check the file and its permissions") from None
    changed = overridden(tables, overrides)
    folder = path.resolve().parent

    def decoded(found: Mapping[str, Any]) -> Config:
        config = decode_config(started_from(found, folder))
        require_evaluations(config.evaluate, config.run)  # only here: sweeps that halve begin with fewer rounds
        return config

    try:
        config = decoded(changed)
    except CrosshatchError as error:
        guilty = culprit(tables, overrides, decoded, error)
        with saying_where(guilty or path):
            raise
    if config.run.name is None:
        called = name if name is not None and is_name(name) else path.stem
        config = replace(config, run=replace(config.run, name=called))
    return with_absolute_paths(config, folder)


def decode_config(tables: Mapping[str, Any]) -> Config:
    for section in tables:
        if section not in SECTIONS:
            hint = meant(section, SECTIONS).replace("'", "[", 1).replace("'", "]")
            raise ConfigError(f"unknown section [{section}]: {hint}Allowed are {', '.join(SECTIONS)}")
    for section in ("data", "algorithm", "run"):
        if section not in tables:
            raise ConfigError(f"section [{section}] is missing: every config needs [data], [algorithm] and [run]")
    network, measure_step = decode_network(tables.get("network", {}))
    algorithm, brought, open_keys = decode_algorithm(tables["algorithm"])
    optimiser = decode_optimiser(tables.get("optimiser", {}), open_keys["auto"])
    federation = decode(tables.get("federation", {}), FederationSettings, "federation")
    model = decode(tables.get("model", {}), ModelSettings, "model")
    if (model.fusion == "transfer") != (federation.common is not None):
        has, needs = (
            ("model.fusion = 'transfer'", "federation.common")
            if federation.common is None
            else (f"federation.common = {federation.common!r}", "model.fusion = 'transfer'")
        )
        raise ConfigError(f"{has} without {needs}: transfer between two silos needs both, or neither")
    if model.fusion == "sum" or federation.labels != "shared":  # then no head is sent
        brought.pop("head", None)
    return Config(
        data=decode(tables["data"], DataSettings, "data"),
        federation=federation,
        model=model,
        algorithm=algorithm,
        optimiser=optimiser,
        network=network,
        evaluate=decode_evaluate(tables.get("evaluate", {})),
        run=decode(tables["run"], RunSettings, "run"),
        privacy=decode(tables.get("privacy", {}), PrivacySettings, "privacy"),
        codecs=decode_codecs(tables.get("codecs", {}), brought),  # last: slow where there are any
        measure_step=measure_step,
        auto=open_keys["auto"],
        measured=open_keys["measure"],
    )


def encode_config(config: Config) -> dict[str, Any]:
    """The tables of a config, as `decode_config` reads them: every section with all its keys, but those left out."""
    sections: dict[str, Any] = {name: getattr(config, name) for name in SECTIONS}
    sections["algorithm"] = algorithm_table(config.algorithm)
    sections["algorithm"] |= dict.fromkeys(config.auto, "auto") | dict.fromkeys(config.measured, "measure")
    steps = config.optimiser
    sections["optimiser"] = {"name": PLAIN} if steps is None else {"name": steps.name} | settings_of(steps)
    sections["codecs"] = codecs_table(config.codecs)
    sections["network"] = network = network_table(config.network)
    if config.measure_step:
        assert isinstance(network, dict)
        network["step_seconds"] = "measure"
    tables = _plain(sections)
    assert isinstance(tables, dict)
    return tables


def config_text(config: Config, files: PartFiles | None = None) -> str:
    """A config as TOML, as a run directory has it: files of own parts are those in its folder `parts`.

    `files` are all that this folder has copies of; left out, those that the config names.
    """
    return msgspec.toml.encode(_in_run(config, files)).decode()


def part_files(*configs: Config) -> PartFiles:
    return PartFiles.of(*map(encode_config, configs))


def _in_run(config: Config, files: PartFiles | None = None) -> dict[str, Any]:
    """The tables as a run directory has them: they name the copies."""
    tables = encode_config(config)
    return with_files(tables, (files or PartFiles.of(tables)).copy_of)


def changed_settings(before: Config, now: Config) -> list[str]:
    """What differs between two configs, a setting each: its value, and what it was."""
    old, new = flat_tables(_in_run(before)), flat_tables(_in_run(now))
    changed = [key for key in {**old, **new} if old.get(key) != new.get(key)]
    return [f"{key} = {new.get(key, 'left out')} (was {old.get(key, 'left out')})" for key in changed]


def with_absolute_paths(config: Config, folder: Path) -> Config:
    """The config with every relative path to data started from `folder`."""

    def started(settings: Any, *keys: str) -> Any:
        paths = {key: path for key in keys if isinstance(path := getattr(settings, key), str)}
        return replace(settings, **{key: str(folder / path) for key, path in paths.items()})

    federation, algorithm = config.federation, config.algorithm
    if isinstance(federation.silos, tuple):
        silos = tuple(started(silo, "path", "test_path", "validation_path") for silo in federation.silos)
        federation = replace(federation, silos=silos)
    if algorithm.graph is not None:
        algorithm = algorithm.with_settings(graph=started(algorithm.graph, "file"))
    return replace(
        config,
        algorithm=algorithm,
        data=started(config.data, "path", "test_path", "validation"),
        federation=federation,
        privacy=started(config.privacy, "ledger"),
    )


def _plain(value: object) -> object:
    """Settings as TOML has them: tables, lists and scalars, without what is not set."""
    if isinstance(value, SiloSettings):
        # One silo of many: only what is said about it.
        standard = SiloSettings(value.name)
        given = {f.name: getattr(value, f.name) for f in fields(value)}
        return {k: _plain(v) for k, v in given.items() if k == "name" or v != getattr(standard, k)}
    if is_dataclass(value) and not isinstance(value, type):
        value = {f.name: getattr(value, f.name) for f in fields(value)}
    if isinstance(value, Mapping):
        plain = {str(key): _plain(item) for key, item in value.items() if item is not None}
        return {key: item for key, item in plain.items() if item != {}}
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    return value
