"""Runs that differ in their seed only, taken as one: their mean, with the runs themselves kept beside it."""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import takewhile
from statistics import fmean, stdev
from typing import Any, TypeVar

import msgspec

from crosshatch.report.runs import Run, section_of
from crosshatch.report.summary_file import Traffic

T = TypeVar("T")
# Of [run]: the seed, and what decides no number. All else must be equal.
_FREE = ("seed", "name", "threads", "checkpoint_every", "track", "processes", "workers")
# What is left at the end of a common name such as `tdcd-seed` or `tdcd, s=`.
_TAIL = re.compile(r"(^|[\W_]+)(seed|s)?[\W_]*$", re.IGNORECASE)


def pool_seeds(runs: Sequence[Run]) -> list[Run]:
    """Runs of equal configs but for `run.seed` become one, with the mean of their curves and `seeds` to look into.

    Those that are known to have been made on other data do not. It stands where the first of them stood. Of two runs
    with one seed the second stays as it is, and so does a run without a config.

    >>> import tempfile
    >>> from pathlib import Path
    >>> from crosshatch import read_run
    >>> runs = []
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for seed, auc in enumerate((0.7, 0.8)):
    ...         path = Path(folder, f"tdcd-{seed}")
    ...         path.mkdir()
    ...         line = f'{{"round": 10, "bytes": 8000, "sim_seconds": 31.0, "auc": {auc}}}'
    ...         written = Path(path, "metrics.jsonl").write_text(line)
    ...         written = Path(path, "config.toml").write_text(f"[run]\\nseed = {seed}")
    ...         runs.append(read_run(path))
    >>> pooled = pool_seeds(runs)
    >>> [run.name for run in pooled], pooled[0].metrics[0]["auc"]
    (['tdcd (2 seeds)'], 0.75)
    """
    pools: list[dict[Any, Run]] = []  # by seed
    alike: dict[str | None, list[dict[Any, Run]]] = {}  # of each config the pools with different data
    for run in runs:
        settings = section_of(run.config, "run")
        seed, kind = settings.get("seed"), None
        if isinstance(seed, int):
            free = {**run.config, "run": {key: value for key, value in settings.items() if key not in _FREE}}
            kind = json.dumps(free, sort_keys=True, default=str)
        same = next((pool for pool in alike.get(kind, []) if not _other_data(run, pool.values())), None)
        if same is not None and seed not in same:
            same[seed] = run
            continue
        pools.append({seed: run})
        if kind is not None and same is None:
            alike.setdefault(kind, []).append(pools[-1])
    found = [list(pool.values()) for pool in pools]
    return _named_apart([[_pool(same)] if len(same) > 1 and _shared_rounds(same) else same for same in found])


def singles(runs: Iterable[Run]) -> list[Run]:
    """Every run by itself, those that were pooled included."""
    return [one for run in runs for one in run.seeds or (run,)]


def counted(runs: Sequence[Run]) -> Sequence[Run]:
    """Those of several seeds that a mean is taken of: finished and not diverged; failing that, not diverged; or all."""
    well = [run for run in runs if not run.diverged]
    return [run for run in well if run.finished] or well or runs


def extremes(run: Run, metric: str) -> list[tuple[float, float]]:
    """The lowest and the highest of the seeds, one pair for each evaluation of a pooled run."""
    tables = [{row["round"]: row for row in one.metrics} for one in counted(run.seeds)]
    values = [[table[row["round"]].get(metric, float("nan")) for table in tables] for row in run.metrics]
    return [(min(several), max(several)) for several in values]


def deviation(values: Sequence[float]) -> float:
    """The standard deviation of a sample (divided by one less than its size); 0 of a single value.

    >>> deviation([1.0, 2.0, 3.0]), deviation([5.0])
    (1.0, 0.0)
    """
    return stdev(values) if len(values) > 1 else 0.0


def _other_data(run: Run, others: Iterable[Run]) -> bool:
    """Whether a run is known to have been made on other data than one of these; under another key nothing is known."""
    found = [one.fingerprint for one in (run, *others) if one.fingerprint is not None]
    return any(one.key == found[0].key and one.digest != found[0].digest for one in found) if run.fingerprint else False


def _shared_rounds(runs: Sequence[Run]) -> list[float]:
    tables = [{row["round"] for row in run.metrics} for run in counted(runs)]
    return sorted(set.intersection(*tables))


def _pool(runs: Sequence[Run]) -> Run:
    first, counting = runs[0], counted(runs)
    tables = [{row["round"]: row for row in run.metrics} for run in counting]
    rows = [_mean_row(number, [table[number] for table in tables]) for number in _shared_rounds(runs)]
    seeds = [run.config["run"]["seed"] for run in runs]
    diverged = [run.facts.diverged for run in runs if run.facts.diverged is not None]
    facts = msgspec.structs.replace(
        counting[0].facts,
        diverged=min(diverged, key=lambda one: one.round) if len(diverged) == len(runs) else None,
        bytes_by_link=_by_name(
            [run.facts.bytes_by_link for run in counting],
            Traffic(),
            lambda many: Traffic(fmean(one.bytes for one in many), fmean(one.messages for one in many)),
        ),
        bytes_by_exchange=_by_name([run.facts.bytes_by_exchange for run in counting], 0.0, fmean),
    )
    return replace(
        first,
        name=_common_name(runs),
        config={**first.config, "run": {**first.config["run"], "seed": seeds}},
        metrics=tuple(rows),
        summary=first.summary if all(run.finished for run in runs) else {},
        facts=facts,
        seeds=tuple(runs),
        fingerprint=first.fingerprint if all(run.fingerprint == first.fingerprint for run in runs) else None,
    )


def _mean_row(number: float, rows: Sequence[Mapping[str, float]]) -> dict[str, float]:
    shared = [key for key in rows[0] if all(key in row for row in rows)]
    # the same number in all of them stays as it is: a sum of floats might not give it back
    return {
        key: rows[0][key] if len({row[key] for row in rows}) == 1 else fmean(row[key] for row in rows) for key in shared
    } | {"round": number}


def _by_name(parts: Sequence[Mapping[str, T]], nothing: T, mean: Callable[[list[T]], T]) -> dict[str, T]:
    names = dict.fromkeys(name for part in parts for name in part)
    return {name: mean([part.get(name, nothing) for part in parts]) for name in names}


def _common_name(runs: Sequence[Run]) -> str:
    """What the names have in common at their beginning, without a `seed` left over; else that of the algorithm."""
    names = [run.facts.name or str(run.config["run"].get("name") or run.path.resolve().name) for run in runs]
    common = names[0]
    if len(set(names)) > 1:
        columns = takewhile(lambda letters: len(set(letters)) == 1, zip(*names, strict=False))
        common = _TAIL.sub("", re.sub(r"\d+$", "", "".join(letters[0] for letters in columns)))
    return f"{common or runs[0].algorithm or 'run'} ({len(runs)} seeds)"


def _named_apart(groups: Sequence[Sequence[Run]]) -> list[Run]:
    """Pooled runs that came to one name say with which run they begin."""
    runs = [run for group in groups for run in group]
    times = Counter(run.name for run in runs)
    return [
        replace(run, name=f"{run.name}, {run.seeds[0].name} first") if run.seeds and times[run.name] > 1 else run
        for run in runs
    ]
