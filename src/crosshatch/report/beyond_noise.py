"""Which runs may be compared by cost, and whether a run is cheaper than another by more than the noise."""

import json
import math
import re
from dataclasses import replace
from statistics import fmean

from crosshatch.report.compare import find_arrival
from crosshatch.report.measures import Target
from crosshatch.report.runs import Run, section_of

LEVELS = 5  # targets tried between one standard error below and one above
_SHARED_EACH_STEP = re.compile(r"\bV\(1\)")


def setting_of(run: Run) -> str:
    """What runs must have in common, as far as their directories tell; to be compared and not to be read.

    It is data, silos, the number of clients and the place of the labels: twenty clients send more than two, whatever
    they run.
    """
    federation, data = run.facts.federation, section_of(run.config, "data")
    split = section_of(run.config, "federation").get("split")
    shapes = [(silo.name, silo.features, silo.samples, silo.holds_labels) for silo in federation.silos]
    content = "" if run.fingerprint is None else run.fingerprint.digest
    return json.dumps([run.clients, data, split, shapes, federation.groups, content], sort_keys=True, default=str)


def is_baseline(run: Run) -> bool:
    """Whether the silos share after every step, as FedSGD does and every algorithm with Q = 1."""
    return run.algorithm == "fedsgd" or bool(_SHARED_EACH_STEP.search(run.facts.federation.tiers))


def factors(cheap: Run, dear: Run, target: Target, cost: str) -> tuple[float, float] | None:
    """How many times as much the dearer spends, from the least to the most; None where it is not shown to be more.

    Test rows are the same for both, so the noise moves the level for both: the cheaper must be so at the target and
    at every level within one standard error of it that it reaches. What lies between two evaluations nobody has seen:
    the dearer must have been looked at, and not have been there, when it had spent as much. Of several seeds no seed of
    the dearer may be cheaper than one of the other.
    """
    noise = _noise(cheap, dear, target.metric)
    found = []
    for step in range(-LEVELS, LEVELS + 1):
        level = replace(target, value=target.value + noise * step / LEVELS)
        ours, theirs = _spent(cheap, level, cost), _spent(dear, level, cost)
        if ours is None:
            if theirs is not None:
                return None
            continue
        if ours <= 0 and step < 0:
            continue  # so low a level was there before the first round
        if theirs is None:
            continue
        seen = max((row[cost] for row in dear.metrics if row[cost] < theirs), default=0.0)
        if seen < ours:
            return None
        found.append(theirs / ours if ours > 0 else math.inf)
    if not found or _seeds_overlap(cheap, dear, target, cost):
        return None
    return min(found), max(found)


def _noise(one: Run, other: Run, metric: str) -> float:
    """The standard error of a metric on the test rows; 0 of what is measured on other rows, or where it is unknown."""
    known = [run.facts.noise[metric] for run in (one, other) if metric in run.facts.noise]
    return fmean(known) if known else 0.0


def _spent(run: Run, target: Target, cost: str) -> float | None:
    arrival = find_arrival(run, target)
    return None if arrival is None else float(getattr(arrival, cost))


def _seeds_overlap(cheap: Run, dear: Run, target: Target, cost: str) -> bool:
    if not (cheap.seeds and dear.seeds):
        return False
    ours, theirs = ([_spent(one, target, cost) for one in run.seeds] for run in (cheap, dear))
    if None in ours:
        return True
    return max(value for value in ours if value is not None) >= min(
        (value for value in theirs if value is not None), default=math.inf
    )
