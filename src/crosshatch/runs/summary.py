"""What a run came to, for who asked for it and for summary.json."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from math import prod
from typing import Any

import numpy as np

from crosshatch.exchanges import declared
from crosshatch.report.measures import COST_KEYS, OTHER_SECONDS, Rows, Target, best_row, first_reaching
from crosshatch.runs.best_round import BestRound
from crosshatch.runs.config import Config
from crosshatch.runs.config_names import algorithm_name
from crosshatch.runs.trained.used_versions import versions
from crosshatch.simulator.cost import silo_costs
from crosshatch.simulator.divergence import Divergence
from crosshatch.simulator.simulator import Simulator
from crosshatch.simulator.state import VerticalState
from crosshatch.task.directions import OF_TRAINING, directions
from crosshatch.task.own_metric import OwnMetric


def summarise(
    config: Config,
    simulator: Simulator,
    rows: Rows,
    strategy: Mapping[str, str],
    diverged: Divergence | None = None,
    best_round: Mapping[str, Any] | None = None,
    counted: Simulator | None = None,
) -> dict[str, Any]:
    """The content of summary.json, from the evaluations and the simulator after the last round.

    Where others have trained the model, `counted` has rounds, bytes and seconds.
    """
    whole, simulator = simulator, simulator if counted is None else counted
    apart, computing = {}, simulator.computing_seconds
    if computing is not None:  # derivatives travel encrypted: computing and messages apart
        apart = {"computing_seconds": computing, "communication_seconds": simulator.seconds - computing}
    course, costs = whole.state, {}
    if isinstance(course, VerticalState):  # on a graph nobody has asked for operations and memory of local steps yet
        costs = silo_costs(course.groups, whole.algorithm, iterations=simulator.iteration)
    last, known = rows[-1], directions(config.evaluate.higher_is_better)
    names = [name for name in last if name not in COST_KEYS]
    return {
        "name": config.name,
        "algorithm": algorithm_name(config.algorithm),
        "rounds": simulator.round,
        "iterations": simulator.iteration,
        **({} if diverged is None else {"diverged": asdict(diverged)}),
        "final": {name: last[name] for name in names},
        **_bests(rows, names, known, best_round),
        "bytes": simulator.meter.bytes,
        "messages": simulator.meter.messages,
        "sim_seconds": simulator.seconds,
        **apart,
        **under_other_networks(simulator),
        "wall_seconds": last["wall_seconds"],
        "bytes_by_link": {
            link: {"bytes": size, "messages": messages} for link, (size, messages) in simulator.meter.links.items()
        },
        "bytes_by_exchange": {exchange: size for exchange, (size, _) in simulator.meter.exchanges.items()},
        "targets": {
            target.label: _arrival(rows, target, config.evaluate.smooth) for target in config.evaluate.parsed_targets
        },
        "strategy": dict(strategy),
        "federation": _federation(whole, simulator),
        "cost": {name: asdict(cost) for name, cost in costs.items()},
        "seed": config.run.seed,
        "threads": config.run.threads,
        **({} if whole.describe_workers is None else {"workers": whole.describe_workers()}),
        "precision": config.run.precision,
        "versions": versions(),
    }


def measure_clients(
    config: Config, simulator: Simulator, metrics: Sequence[str | OwnMetric], best: BestRound | None
) -> dict[str, Any]:
    """The part `per_client` of it, where it is asked for: of the model that predictions take, so the best if any."""
    if not config.evaluate.per_client:
        return {}
    done, weights = simulator.round, None
    if best is not None and best.row is not None:
        done, weights = best.row["round"], best.weights
    known = directions(config.evaluate.higher_is_better)
    return {"per_client": {"round": done, "silos": simulator.evaluate_clients(metrics, weights, known)}}


def further_costs(simulator: Simulator) -> dict[str, Any]:
    """What only some runs count, for a line of metrics.jsonl."""
    counted = {"communications": simulator.communications, "computing_seconds": simulator.computing_seconds}
    return {name: value for name, value in counted.items() if value is not None} | under_other_networks(simulator)


def under_other_networks(simulator: Simulator) -> dict[str, float]:
    """Simulated seconds under the networks behind the first, where [[network]] lists several."""
    state = simulator.state
    if not isinstance(state, VerticalState) or simulator.computing_seconds is not None:
        return {}
    others = state.seconds_under_each[1:]
    return {f"sim_seconds_{number}": seconds for number, seconds in enumerate(others, 2)}


def _arrival(rows: Rows, target: Target, smooth: int) -> dict[str, Any] | None:
    """Round, bytes and simulated time of the first evaluation by which the target was reached."""
    row = first_reaching(rows, target, smooth)
    costs = ("round", "bytes", "sim_seconds", "computing_seconds", "communications")
    return None if row is None else {key: row[key] for key in (*costs, *OTHER_SECONDS) if key in row}


def _bests(
    rows: Rows, names: Sequence[str], known: Mapping[str, bool], chosen: Mapping[str, Any] | None
) -> dict[str, Any]:
    """What is called best is never chosen on test rows: all metrics at the round that validation rows chose.

    Without those, only metrics of the training rows have a best; the others a peak, under a name that says so.
    """
    if chosen is not None:
        best = {name: {"value": chosen[name], "round": chosen["round"]} for name in names}
        return {"best": best, "best_round": dict(chosen)}
    found = {}
    for name in names:
        row = best_row(rows, name, known)
        found[name] = {"value": row[name], "round": row["round"]}
    return {
        "best": {name: one for name, one in found.items() if name in OF_TRAINING},
        "peak_on_test_rows": {name: one for name, one in found.items() if name not in OF_TRAINING},
    }


def _federation(simulator: Simulator, counted: Simulator) -> dict[str, Any]:
    data = simulator.data
    silos = [
        {
            "name": silo.name,
            "clients": silo.clients,
            "features": len(silo.features) or prod(silo.train.shape[1:]),
            "samples": len(silo.train),
            "parameters": len(weights),
            "holds_labels": data.label_silo in (None, silo.name),
        }
        for silo, weights in zip(data.silos, simulator.weights, strict=True)
    ]
    groups = 1 if data.groups is None else len(np.unique(data.groups))
    tiers = "" if declared(simulator.algorithm).central else str(simulator.algorithm.topology)
    shape = {"silos": silos, "tiers": tiers, "groups": groups}
    graph = counted.state.describe()
    return shape if graph is None else shape | {"graph": graph}
