"""What a sweep was asked for: its points, each with a config of its own, the seeds, and by what one is chosen.

sweep.json     what was asked, so that the same command goes on with it and another is refused
parts/         copies of the files of a user's own parts, where configs name any: all runs use these
runs/          a run directory per point and seed
printed/       what runs have printed, a file for each that did
table.csv      one line per point
result.json    which point was chosen, and which have failed and why
report.html    the best points on a page, means over the seeds
chosen.toml    the config of the chosen point; `crosshatch train chosen.toml` runs it
"""

import json
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from crosshatch.data.sources import require_sources
from crosshatch.errors import ConfigError, CrosshatchError, RunError
from crosshatch.runs.config import Config, changed_settings, config_text, decode_config, part_files, read_config
from crosshatch.runs.config_names import ALGORITHMS
from crosshatch.runs.files import write_json, writing
from crosshatch.runs.one_writer import LOCK
from crosshatch.runs.own_parts.part_files import PARTS, PartFiles, started_from
from crosshatch.runs.tracking.trackers import require_trackers
from crosshatch.sweeps.choice import Choice, parse_choice
from crosshatch.sweeps.grid import Axis, Bundles, Seeds, parse_grid, parse_seeds, point_names, points, run_name
from crosshatch.sweeps.jobs import Job
from crosshatch.task.directions import VALIDATION, directions

LACKING = "-"
_NO_BUNDLES = Bundles()
_OPTIONS = {"grid": "--grid", "seeds": "--seeds", "halving": "--choose, which --halving goes by,"}


@dataclass(frozen=True)
class Point:
    """Values for all settings of the grid, and the config with them; None where it is `refused`."""

    name: str
    values: tuple[str, ...]
    config: Config | None
    refused: str = ""


@dataclass(frozen=True)
class Sweep:
    """All of it. `called`: the name of a run whose config does not name it. `files`: of all points' own parts."""

    axes: tuple[Axis, ...]
    points: tuple[Point, ...]
    seeds: Seeds
    choice: Choice
    halving: bool
    called: str
    files: PartFiles
    config_at: Callable[[tuple[str, ...]], Config] | None = None  # the config with other values, to widen the grid
    single: int = 0  # so many of the axes, the first ones, go with no other

    @property
    def threads(self) -> int:
        """Of the run that has most of them."""
        return max(point.config.run.threads or 1 for point in self.points if point.config is not None)

    @property
    def workers(self) -> int:
        """Of a run, at most."""
        return max(point.config.run.workers or 0 for point in self.points if point.config is not None)

    def jobs(self, point: Point, out: Path, folder: Path | None, rounds: int) -> dict[int, Job]:
        """The runs of a point by their seed, for so many rounds."""
        assert point.config is not None
        jobs = {}
        for seed in self.seeds.beside(point.config.run.seed):
            name = run_name(point.name, seed)
            # one thread, unless the config says otherwise: jobs side by side would fight for the cores
            threads = point.config.run.threads or 1
            run = replace(point.config.run, name=name, seed=seed, threads=threads, rounds=rounds)
            text = config_text(replace(point.config, run=run), self.files)
            path = str((out / "runs" / name).resolve())
            jobs[seed] = Job(name, text, path, None if folder is None else str(folder.resolve()), rounds, threads)
        return jobs

    def chosen_text(self, point: Point, choice: Choice) -> str:
        """The config of a point, for a run by itself: named after its folder, and keeping the round that counted."""
        assert point.config is not None
        config, metric = point.config, choice.metric or ""
        name = None if config.name == self.called else config.name
        evaluate = config.evaluate
        if choice.kind == "best" and evaluate.best_by is None and metric.startswith(VALIDATION):
            evaluate = replace(evaluate, best_by=metric.removeprefix(VALIDATION))
        return config_text(replace(config, evaluate=evaluate, run=replace(config.run, name=name)), self.files)

    def blaming_originals(self, text: str, out: Path) -> str:
        """What a run says of a file of the user's own, which it knows as a copy."""
        for file, name in self.files.names.items():
            text = text.replace(str((out / PARTS / name).resolve()), str(file))
        return text


def read_sweep(
    path: Path,
    changes: Sequence[str],
    grid: Sequence[str],
    *,
    seeds: str,
    choose: str | None,
    halving: bool,
    folder: Path | None,
    bundles: Bundles = _NO_BUNDLES,
) -> Sweep:
    """A sweep from the options of the command line; refused where no point of it can be run."""
    axes, numbers = parse_grid(grid, changes), parse_seeds(seeds)
    together = bundles.parse([*changes, *(f"{axis.key}=" for axis in axes)])
    found = points(axes, numbers, together)
    single = len(axes)
    axes = (*axes, *(axis for bundle in together for axis in bundle))
    found = list(dict.fromkeys(_without_lacking(axes, values) for values in found))
    made = []

    def config_at(values: tuple[str, ...]) -> Config:
        # what an algorithm does not have is taken out of the config, too
        own = [f"{axis.key}={value if value != LACKING else ''}" for axis, value in zip(axes, values, strict=True)]
        config = read_config(path, [*changes, *own])
        part_files(config).read()
        require_sources(config.data, config.federation, folder)
        require_trackers(config.run.track)
        return config

    for name, values in zip(point_names(axes, found), found, strict=True):
        own = [f"{axis.key}={value}" for axis, value in zip(axes, values, strict=True)]
        try:
            config = config_at(values)
            made.append(Point(name, values, config))
        except CrosshatchError as error:
            of_grid = str(error).startswith(tuple(f"--set {one}: " for one in own))
            made.append(Point(name, values, None, str(error).replace("--set", "--grid", 1) if of_grid else str(error)))
    configs = [point.config for point in made if point.config is not None]
    ours = {name: higher for config in configs for name, higher in config.evaluate.higher_is_better.items()}
    choice = parse_choice(choose, directions(ours))
    if halving:
        _check_halving(axes, found, choice)
    for place, point in enumerate(made):
        try:
            if point.config is not None:
                choice.check(point.config)
        except CrosshatchError as error:  # its runs could not be chosen from
            made[place] = replace(point, config=None, refused=str(error))
    refusals = dict.fromkeys(point.refused for point in made)
    if "" not in refusals:
        first = next(iter(refusals))
        raise ConfigError(first if len(refusals) == 1 else f"no point of the grid can be run; the first: {first}")
    files = part_files(*(point.config for point in made if point.config is not None)).read()
    return Sweep(axes, tuple(made), numbers, choice, halving, path.stem, files, config_at, single)


def _without_lacking(axes: Sequence[Axis], values: tuple[str, ...]) -> tuple[str, ...]:
    """The same values, a dash for settings that the algorithm of this point does not have: it takes part without."""
    given = {axis.key: value for axis, value in zip(axes, values, strict=True)}
    kind = ALGORITHMS.get(given.get("algorithm.name", "").strip("\"'").removeprefix("c-"))
    if kind is None:
        return values
    known = {f"algorithm.{field.name}" for field in fields(kind)} | {"algorithm.name"}
    return tuple(
        LACKING if key.startswith("algorithm.") and key not in known else value for key, value in given.items()
    )


def _check_halving(axes: Sequence[Axis], found: Sequence[object], choice: Choice) -> None:
    if len(found) < 2:
        raise ConfigError("--halving ends the runs of worse points early, and there is one point: give a --grid")
    if any(axis.key == "run.rounds" for axis in axes):
        raise ConfigError("--halving decides how many rounds each point gets: leave run.rounds out of the grid")
    if choice.kind == "fewest":
        raise ConfigError(
            f"--halving compares runs before they are done, and '{choice.text}' asks when: choose by 'best validation "
            "auc' or 'last validation auc', or leave --halving out"
        )


def keep_sweep(sweep: Sweep, out: Path) -> None:
    """Write what was asked into the sweep's folder, with copies of own parts; refuse one that has something else."""
    path, asked = out / "sweep.json", _described(sweep)
    if path.is_file():
        _require_same(path, asked, sweep.files, out)
        with writing(out):
            sweep.files.write(out)
        return
    strange = sorted(
        entry.name for entry in out.iterdir() if entry.name != LOCK and not entry.name.startswith("sweep.json")
    )
    if strange:
        raise RunError(
            f"the output folder {out} exists and is not a sweep's (it has {strange[0]}): choose another --out"
        )
    with writing(out):
        write_json(path, asked)
        sweep.files.write(out)


def _described(sweep: Sweep) -> dict[str, Any]:
    configs = {
        point.name: point.refused if point.config is None else config_text(point.config, sweep.files)
        for point in sweep.points
    }
    parts = {"parts": sweep.files.hashes} if sweep.files.names else {}
    return parts | {
        "grid": {axis.key: list(axis.values) for axis in sweep.axes},
        "seeds": list(sweep.seeds.numbers),
        "added": sweep.seeds.added,
        "halving": sweep.choice.text if sweep.halving else None,  # the choice ends runs early, so it belongs to them
        "configs": configs,
    }


def _require_same(path: Path, asked: dict[str, Any], files: PartFiles, out: Path) -> None:
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
        files.require_unchanged(stored.get("parts", {}), out, "sweep")
        same = stored == asked
        options = [option for option in ("grid", "seeds", "added", "halving") if stored[option] != asked[option]]
        configs = (
            {name: (stored["configs"][name], text) for name, text in asked["configs"].items()} if not options else {}
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RunError(f"{path} cannot be read ({type(error).__name__}): it was changed, use another --out") from None
    if same:
        return
    if options:
        option = "seeds" if options[0] == "added" else options[0]
        was, now = (json.dumps(table[option]) for table in (stored, asked))
        changed = f"{_OPTIONS[option]} {now} (was {was})"
    else:
        texts = next(both for both in configs.values() if both[0] != both[1])
        try:
            before, after = (decode_config(started_from(tomllib.loads(text), out)) for text in texts)
            changed = ", ".join(changed_settings(before, after))
        except (CrosshatchError, tomllib.TOMLDecodeError):
            changed = "another point was refused"
    raise RunError(f"the sweep in {out} was started otherwise: {changed}; undo this, or choose another --out")
