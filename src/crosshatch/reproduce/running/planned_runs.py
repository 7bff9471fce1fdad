"""The runs of a set as configs: every method, value and seed, each with the key by which a finished one is known."""

import tomllib
from dataclasses import dataclass, replace
from pathlib import Path

from crosshatch.errors import CrosshatchError, saying_where
from crosshatch.reproduce.recipe import Method, Profile, RunSet
from crosshatch.reproduce.running.keys import Keys
from crosshatch.runs.config import Config, config_text, decode_config
from crosshatch.runs.config_names import algorithm_name
from crosshatch.runs.tables.overrides import overridden
from crosshatch.sweeps.jobs import Job

VALUE = "VALUE"


@dataclass(frozen=True)
class PlannedRun:
    """A run that a set needs."""

    set: str
    method: str
    value: float | None
    seed: int
    config: Config
    key: str

    @property
    def folder(self) -> str:
        """The name of its directory: whoever needs the same run finds it there."""
        return f"{algorithm_name(self.config.algorithm)}-{self.key}"

    def job(self, out: Path, data: Path | None) -> Job:
        """For whoever has a core free; one thread, since jobs run side by side."""
        run = replace(self.config.run, name=self.folder, threads=1)
        text = config_text(replace(self.config, run=run))
        folder = None if data is None else str(data.resolve())
        return Job(self.folder, text, str((out / "runs" / self.folder).resolve()), folder, run.rounds, 1)


def plan(runs: RunSet, method: Method, value: float | None, profile: Profile, keys: Keys) -> tuple[PlannedRun, ...]:
    """The runs of one method with one value, a run per seed."""
    return tuple(
        PlannedRun(runs.name, method.name, value, seed, config, keys.of(config))
        for seed in runs.seeds[profile]
        for config in (build(runs, method, value, seed, profile),)
    )


def build(runs: RunSet, method: Method, value: float | None, seed: int, profile: Profile) -> Config:
    changes = [*runs.changes.get(profile, ()), *method.changes]
    if value is not None:
        assert runs.search is not None
        changes.append(runs.search.setting.replace(VALUE, repr(value)))
    tables = overridden(tomllib.loads(runs.config), [*changes, f"run.seed={seed}"])
    with saying_where(f"runs {runs.name}, {method.name}", CrosshatchError):
        return decode_config(tables)


def values_of(runs: RunSet, method: Method) -> tuple[float | None, ...]:
    """What is tried before anything is widened."""
    if runs.search is None:
        return (None,)
    return runs.search.values if method.values is None else method.values
