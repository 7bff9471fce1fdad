"""`crosshatch plan`."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.text import Text

from crosshatch.cli.opening import describe_network
from crosshatch.data.sources import require_sources
from crosshatch.own_parts import blaming
from crosshatch.report.printed_tables import print_line, print_table
from crosshatch.report.units import human_bytes, human_count, human_number, human_seconds
from crosshatch.runs.config import part_files, read_config
from crosshatch.runs.config_names import algorithm_name

if TYPE_CHECKING:
    from crosshatch.runs.planning.plan import Judgement, Outlook, Plan

UPPER = "An upper bound by theory: expect far fewer."
NEVER = "Never: noise alone keeps the bound above that; larger batches lower it, --target-gradient asks for less."


def show_plan(
    config_path: Path, changes: Sequence[str], *, data: Path | None, level: float | None, as_json: bool
) -> None:
    config = read_config(config_path, changes)
    require_sources(config.data, config.federation, data)
    from crosshatch.runs.planning.plan import make_plan  # late: torch takes seconds, the config was checked without it

    with blaming(part_files(config).names):
        plan = make_plan(config, folder=data, level=level)
    if as_json:
        print(json.dumps(plan_table(plan), indent=2, allow_nan=False))
    else:
        _print(plan, Console())


def show_cluster(config_path: Path, changes: Sequence[str], asked: str, *, data: Path | None, as_json: bool) -> None:
    config = read_config(config_path, changes)
    require_sources(config.data, config.federation, data)
    from crosshatch.runs.planning.cluster import plan_cluster, read_machines  # late: torch takes seconds

    machines = read_machines(asked)
    with blaming(part_files(config).names):
        plan = plan_cluster(config, machines, folder=data)
    every = [asdict(one) | asdict(time) | {"seconds": time.seconds} for one, time in plan.each]
    if as_json:
        print(json.dumps({"tried_clients": plan.tried, "one_core": asdict(plan.one), "machines": every}, indent=2))
        return
    console = Console()
    rows = (
        (
            f"{one['workers']:,}", f"{one['cores']:,}",
            *(human_seconds(one[key]) for key in ("computing", "moving", "driver", "seconds")),
            f"{(plan.one.computing + plan.one.driver) / one['seconds']:.1f}",
        )
        for one in every
    )  # fmt: skip
    heads = ">workers|>cores each|>computing|>moving|>driver|>a round|>times one core"
    print_table(console, heads, rows, f"{config.name}: an estimate of a round on workers")
    of = "rounds of it" if plan.tried is None else f"rounds with {plan.tried} clients in every silo"
    print_line(
        console,
        f"From {of} on one core of this machine, and questions as fast as between processes of one machine; other "
        "machines, and cores that share their memory, differ.",
    )


def plan_table(plan: Plan) -> dict[str, Any]:
    """The plan as plain data; what is not finite is left out."""
    known, config = plan.constants, plan.config

    def by_silo(values: Sequence[float]) -> dict[str, float]:
        return dict(zip(plan.silos, values, strict=True))

    return {
        "name": config.name,
        "algorithm": algorithm_name(plan.algorithm),
        "tiers": str(plan.algorithm.topology),
        "rounds": config.run.rounds,
        "iterations": plan.iterations,
        "global_steps": plan.global_steps,
        "local_steps": plan.local_steps,
        "step_size": plan.step_size,
        "constants": {
            "gap": known.gap,
            "rho": known.rho,
            "delta": math.sqrt(known.delta_squared),
            "delta_squared": known.delta_squared,
            "lipschitz": known.lipschitz,
            "local_lipschitz": known.local_lipschitz,
            "block_lipschitz": by_silo(known.block_lipschitz),
            "batch_noise": by_silo(known.batch_noise),
            "client_noise": by_silo(known.client_noise),
            "gradient_squared": plan.gradient_squared,
        },
        "theorems": [
            {
                "theorem": judged.theorem.name,
                "applies": judged.applies,
                "differs": list(judged.theorem.differs),
                "limit": judged.theorem.limit.stated,
                **({"block_lipschitz": by_silo(judged.theorem.lipschitz)} if judged.theorem.lipschitz else {}),
                "supported_limit": judged.theorem.limit.supports,
                "above_limit": judged.above,
                "bound": {
                    key: getattr(judged.bound, key)
                    for key in ("step_size", "value", "start", "noise", "drift", "dominant")
                },
            }
            for judged in plan.judgements
        ],
        "strategies": [asdict(advice) for advice in plan.advice],
        "round": {"bytes": plan.cost.bytes, "sim_seconds": plan.cost.seconds},
        "run": {
            "rounds": config.run.rounds,
            "bytes": config.run.rounds * plan.cost.bytes,
            "sim_seconds": config.run.rounds * plan.cost.seconds,
        },
        "target_gradient": plan.level,
        "forecasts": [asdict(outlook) for outlook in plan.outlooks],
        "warnings": list(plan.warnings),
        **({} if plan.leakage is None else {"leakage": dict(plan.leakage)}),
    }


def _print(plan: Plan, console: Console) -> None:
    """What it costs first, then what theory promises, and at the end what it does not speak of."""
    config, say = plan.config, partial(print_line, console)
    say(
        f"{config.name}: {type(plan.algorithm).__name__} {plan.algorithm.topology}, {config.run.rounds} rounds, "
        f"T = {plan.iterations} local steps, step size {human_number(plan.step_size)}\n"
    )
    counts = (("a round", 1), ("the run of the config", config.run.rounds))
    costs = ((what, human_count(n), *_cost(n * plan.cost.bytes, n * plan.cost.seconds)) for what, n in counts)
    print_table(console, "|>rounds|>sent|>simulated time", costs, "What it costs, by simulated rounds")
    say(describe_network(config.network))
    if plan.leakage is not None:
        say(leakage_words(plan.leakage))
    for warning in plan.warnings:
        say(f"warning: {warning}", "yellow")
    say("")
    title = f"At the latest: until |grad F|^2 is on average at most {human_number(plan.level)}"
    print_table(console, "by|>step size|>rounds|>sent|>simulated time", map(_forecast, _shown(plan)), title)
    say(UPPER)
    if any(outlook.rounds is None for outlook in _shown(plan)):
        say(NEVER)
    say("")
    advised = (
        (
            one.strategy,
            human_count(one.global_steps),
            human_count(one.local_steps),
            human_number(one.step_size),
            one.says,
        )
        for one in plan.advice
    )
    print_table(console, "strategy|>P|>Q|>step size|from", advised, "Adaptive strategies")
    say("")
    bounds = map(_bound, sorted(plan.judgements, key=lambda judged: not judged.applies))
    title = "Bounds on the averaged squared gradient norm"
    print_table(console, "theorem|>step-size limit|>at step size|>bound|largest term|applies", bounds, title)
    say("")
    print_table(console, "constant|>value|meaning", _constants(plan), "Estimated constants")
    for judged in plan.judgements:
        if not judged.applies:
            say(f"{judged.theorem.name} does not cover this setting: {'; '.join(judged.theorem.differs)}")


def _shown(plan: Plan) -> list[Outlook]:
    """Forecasts of the theorems that are about this setting; where none is, of those about the nearest ones."""
    about = {judged.theorem.name for judged in plan.judgements if judged.applies}
    return [outlook for outlook in plan.outlooks if not about or outlook.theorem in about]


def leakage_words(found: Mapping[str, Any]) -> str:
    """What a run tells of labels that one silo holds, in a line."""
    words = (
        f"Labels: this run gives {human_count(found['equations'])} equations about {human_count(found['labels'])} "
        f"labels, {human_count(found['with_all_runs'])} with all runs before, at most {human_count(found['most'])}"
    )
    return words + (" (accepted)" if found["too_many"] and found["accepted"] else "")


def _constants(plan: Plan) -> Iterator[tuple[str, str, str]]:
    known = plan.constants
    rows: list[tuple[str, float, str]] = [
        ("F0", known.gap, "loss at the start, above 0"),
        ("rho", known.rho, "Lipschitz constant of gradient and stochastic partial derivatives"),
        ("delta", math.sqrt(known.delta_squared), "root mean square of a client's noise, worst silo"),
        ("L", known.lipschitz, "Lipschitz constant of the gradient"),
        ("L_max", known.local_lipschitz, "the largest of a client's partial derivative"),
    ]
    silos = zip(plan.silos, known.block_lipschitz, known.batch_noise, known.client_noise, strict=True)
    for name, own, batch, client in silos:
        spread = f"noise^2 {human_number(batch)} per batch, {human_number(client)} per client"
        rows.append((f"L of {name}", own, f"partial derivative of the block; {spread}"))
    for theorem in (judged.theorem for judged in plan.judgements if judged.theorem.lipschitz):
        for name, own in zip(plan.silos, theorem.lipschitz, strict=True):
            rows.append((f"L_k of {name}", own, f"that of {theorem.name}: its scores alone"))
    rows.append(("|grad F|^2", plan.gradient_squared, "at the start"))
    return ((name, human_number(value), meaning) for name, value, meaning in rows)


def _bound(judged: Judgement) -> tuple[str | Text, ...]:
    limit = Text(human_number(judged.theorem.limit.stated))
    if judged.above:
        limit = Text(f"{limit}, exceeded", style="yellow" if judged.applies else "")
    bound, applies = judged.bound, "yes" if judged.applies else "no"
    return judged.theorem.name, limit, human_number(bound.step_size), human_number(bound.value), bound.dominant, applies


def _cost(size: float, seconds: float) -> tuple[str, str]:
    return human_bytes(size), human_seconds(seconds)


def _forecast(outlook: Outlook) -> tuple[str, ...]:
    rounds, size, seconds = outlook.rounds, outlook.bytes, outlook.sim_seconds
    cells = ("never", "-", "-")
    if rounds is not None and size is not None and seconds is not None:
        cells = (human_count(rounds), *_cost(size, seconds))
    return outlook.theorem, human_number(outlook.step_size), *cells
