"""Sentences that say what a plot shows, computed from the runs; none claims more than the numbers do.

They speak of curves: a curve is a run, the mean of its seeds, a point of a sweep or a method of a study.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from crosshatch.errors import ConfigError
from crosshatch.report.beyond_noise import factors, is_baseline, setting_of
from crosshatch.report.compare import find_arrival, find_best
from crosshatch.report.measures import (
    Target,
    first_reaching,
    main_metric,
    metric_title,
    moving_means,
    parse_target,
)
from crosshatch.report.palette import is_yardstick
from crosshatch.report.pooled import singles
from crosshatch.report.rows_apart import rows_apart
from crosshatch.report.runs import Run
from crosshatch.report.units import human_bytes, human_count, human_factor, human_number, human_seconds

Cost = tuple[float, Run]

# Below this ratio two costs are called about the same.
_SAME = 1.05
# So many evaluations in a row must have reached a level that nobody has named.
_SMOOTH = 3


@dataclass(frozen=True)
class CostAxis:
    """A cost against which curves are drawn: `key` in metrics.jsonl, and its words."""

    key: str
    tab: str
    label: str
    spend: Callable[[float], str]
    less: str


AXES = (
    CostAxis("round", "rounds", "round", lambda n: f"in {human_count(n)} round{'' if n == 1 else 's'}", "fewer"),
    CostAxis("bytes", "bytes", "bytes sent by all parties", lambda n: f"with {human_bytes(n)}", "less"),
    CostAxis("sim_seconds", "simulated time", "simulated time", lambda n: f"in {human_seconds(n)} simulated", "faster"),
)

COMMUNICATIONS = CostAxis(
    "communications",
    "communications",
    "communications (each one number per training sample)",
    lambda n: f"with {human_count(n)} communication{'' if n == 1 else 's'}",
    "fewer",
)


def axes_of(runs: Sequence[Run]) -> tuple[CostAxis, ...]:
    """The axes of these runs: communications where all of them count in those."""
    counted = all(COMMUNICATIONS.key in row for run in runs for row in run.metrics)
    return (*AXES, COMMUNICATIONS) if counted else AXES


def shared_metrics(runs: Sequence[Run]) -> tuple[str, ...]:
    """Metrics that every run has, the most telling one first."""
    names = tuple(name for name in runs[0].metric_names if all(name in run.metric_names for run in runs))
    if not names:
        return ()
    main = main_metric(names)
    return (main, *(name for name in names if name != main))


def chosen_targets(runs: Sequence[Run], given: Sequence[Target] = ()) -> tuple[Target, ...]:
    """Those given, and those of the runs' own configs; failing both, the level that every run reaches."""
    targets = list(given)
    for label in dict.fromkeys(label for run in runs for label in run.facts.targets):
        try:
            targets.append(parse_target(label))
        except ConfigError:
            continue  # written by another version: its own summary still shows it
    shared = shared_metrics(runs)
    known = tuple(dict.fromkeys(target for target in targets if target.metric in shared))
    if known or not shared:
        return known
    level = level_all_reach(runs, shared[0])
    return (level,) if level else ()


def level_all_reach(runs: Sequence[Run], metric: str) -> Target | None:
    """The best that the worst run comes to, rounded to three digits towards the easier side; None for a single run.

    It is the mean of some evaluations in a row, where runs have many: one that touches a level once has not come to it.
    Runs that diverged reach nothing: they are left out. So are yardsticks, where two others are there to be compared:
    what one silo has alone is no level for federations. Of several seeds every one is asked.
    """
    runs = [run for run in runs if not run.diverged]
    rivals = [run for run in runs if not is_yardstick(run)]
    runs = rivals if len(rivals) > 1 else runs
    if len(runs) < 2:
        return None
    runs = [run for run in singles(runs) if not run.diverged]
    if any(metric not in run.directions for run in runs):
        return None
    smooth = _SMOOTH if all(len(run.metrics) >= 2 * _SMOOTH for run in runs) else 1
    higher = runs[0].directions[metric]
    means = [[mean for mean in moving_means(run.metrics, metric, smooth) if math.isfinite(mean)] for run in runs]
    if not all(means):
        return None
    worst = min(map(max, means)) if higher else max(map(min, means))
    if any(first_reaching(run.metrics[:smooth], Target(metric, worst, higher, smooth)) for run in runs):
        return None  # one was there before its first round: that tells of nobody
    if worst == 0:
        return Target(metric, 0.0, higher, smooth)
    decimals = 2 - math.floor(math.log10(abs(worst)))
    scaled = worst * 10.0**decimals
    rounded = (math.floor(scaled + 1e-9) if higher else math.ceil(scaled - 1e-9)) / 10.0**decimals
    # means and scaling round in the last bit, and the worst run must not miss its own level for that
    return Target(metric, min(rounded, worst) if higher else max(rounded, worst), higher, smooth)


def headline(runs: Sequence[Run], targets: Sequence[Target]) -> str:
    """The sentence above the whole report: the first target by bytes, else where a single run has ended."""
    if targets:
        return target_finding(runs, targets[0], AXES[1])
    shared, lost = shared_metrics(runs), [run for run in runs if run.diverged]
    if len(lost) == len(runs):
        return _all_diverged(lost)
    if len(runs) > 1 or not shared:
        return ", ".join(run.name for run in runs)
    last = human_number(runs[0].metrics[-1].get(shared[0], math.nan))
    return f"{metric_title(shared[0])} of {runs[0].name} ends at {last}"


def curve_title(runs: Sequence[Run], metric: str, axis: CostAxis, targets: Sequence[Target]) -> str:
    """What the curves of `metric` against `axis` show."""
    target = next((target for target in targets if target.metric == metric), None)
    if target is None:
        return f"{metric_title(metric)} against {axis.label}"
    return target_finding([run for run in runs if metric in run.metric_names], target, axis)


def target_finding(runs: Sequence[Run], target: Target, axis: CostAxis) -> str:
    """Which run reaches the target at least cost, and how that compares with a baseline, else with the dearest.

    Runs are compared with those that have the same data, silos, number of clients and place of the labels. Those that
    diverged are named, and compared with nobody.
    """
    lost = [run for run in runs if run.diverged]
    runs = [run for run in runs if not run.diverged]
    if not runs:
        return _all_diverged(lost)
    sentence = _target_finding(runs, target, axis, all_of_them=not lost)
    who = lost[0].name if len(lost) == 1 else f"{len(lost)} others"
    return f"{sentence}; {who} diverged" if lost else sentence


def _target_finding(runs: Sequence[Run], target: Target, axis: CostAxis, *, all_of_them: bool) -> str:
    goal = goal_words(target)
    rivals = [run for run in runs if not is_yardstick(run)] or list(runs)
    arrivals = [(run, find_arrival(run, target)) for run in rivals]
    costs = [(float(getattr(arrival, axis.key)), run) for run, arrival in arrivals if arrival is not None]
    if not costs:
        return f"{'No curve reaches' if len(rivals) > 1 else f'{rivals[0].name} does not reach'} {goal}" + _closest(
            rivals, target
        )
    missing = [run for run, arrival in arrivals if arrival is None]
    sentence = _by_setting(costs, target, axis, some=bool(missing) or not all_of_them)
    if not missing:
        return sentence
    if len(missing) == 1:
        return f"{sentence}; {missing[0].name} does not"
    baseline = next((run for run in missing if is_baseline(run)), None)
    return f"{sentence}; {len(missing)} curves do not" + (f", {baseline.name} among them" if baseline else "")


def _by_setting(costs: list[Cost], target: Target, axis: CostAxis, *, some: bool) -> str:
    """Of the setting that several runs have in common; of several such one with a baseline, or the one of most runs."""
    goal = goal_words(target)
    settings: dict[str, list[Cost]] = {}
    for cost, run in costs:
        settings.setdefault(setting_of(run), []).append((cost, run))
    if len(settings) == 1:
        return _winner(costs, target, goal, axis, who=f"{len(costs)} curves reach" if some else "All curves reach")
    same = max(settings.values(), key=lambda one: (len(one) > 1, any(is_baseline(run) for _, run in one), len(one)))
    if len(same) == 1:
        return f"{len(costs)} curves reach {goal}, no two of them with the same data, clients and labels"
    words = _winner(same, target, goal, axis, who=f"{len(same)} curves reach")
    return f"With the same data, clients and labels {words}"


def _winner(costs: list[Cost], target: Target, goal: str, axis: CostAxis, *, who: str) -> str:
    """Which of runs alike is the cheapest, and against what: a baseline where there is one, else the next cheapest.

    It is said only where the difference is larger than the noise of both.
    """
    costs = sorted(costs, key=lambda item: (item[0], item[1].name))
    least, cheapest = costs[0]
    most, dearest = costs[-1]
    if len(costs) > 1 and least > 0 and most / least < _SAME:
        return f"{who} {goal} {axis.spend(most)}" + ("" if most == least else ", give or take 5%")
    sentence = f"{cheapest.name} reaches {goal} {axis.spend(least)}" + (" in the median" if cheapest.seeds else "")
    baselines = [(cost, run) for cost, run in costs if is_baseline(run)]
    # FedSGD before others that share each step, and of those the cheapest: the strongest rival
    baselines.sort(key=lambda item: item[1].algorithm != "fedsgd")
    others = [item for item in baselines if least > 0 and item[0] / least >= _SAME] or costs[1:]
    if not others or least <= 0:
        return sentence
    most, dearest = others[0]
    found = factors(cheapest, dearest, target, axis.key)
    if found is None:
        spent = f"{cheapest.name} {axis.spend(least)}, {dearest.name} {axis.spend(most)}"
        return f"{who} {goal}, {spent}: a difference within the noise"
    low, high = (human_factor(factor) for factor in found)
    between = f" ({low} to {high} within the noise)" if low != high else ""
    return f"{sentence}, {human_factor(most / least)} {axis.less} than {dearest.name}{between}"


def goal_words(target: Target) -> str:
    """A target inside a sentence."""
    return f"{metric_title(target.metric)} {target.value:.4g}"


def _closest(runs: Sequence[Run], target: Target) -> str:
    found = [(best.value, run.name) for run in runs if (best := find_best(run, target.metric))]
    if not found or rows_apart(runs).differ:
        return ""
    value, name = max(found) if target.higher else min(found)
    who = "it comes closest with" if len(runs) == 1 else f"{name} comes closest with"
    return f"; {who} {human_number(value)}"


def _all_diverged(runs: Sequence[Run]) -> str:
    if len(runs) > 1:
        return "All diverged"
    facts = runs[0].facts.diverged
    assert facts is not None
    return f"{runs[0].name} diverged at round {human_count(facts.round)}"
