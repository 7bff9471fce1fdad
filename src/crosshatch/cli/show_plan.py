"""`crosshatch plan`."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from crosshatch.cli.opening import describe_network
from crosshatch.data.reading.sources import require_sources
from crosshatch.report.units import human_bytes, human_count, human_number, human_seconds
from crosshatch.report.word_widths import keep_words
from crosshatch.runs.config import part_files, read_config
from crosshatch.runs.config_names import algorithm_name
from crosshatch.runs.parts.blaming import blaming

if TYPE_CHECKING:
    from crosshatch.runs.planning.plan import Outlook, Plan

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


def plan_table(plan: Plan) -> dict[str, Any]:
    """The plan as plain data; what is not finite is left out."""
    known, config = plan.constants, plan.config
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
            "block_lipschitz": dict(zip(plan.silos, known.block_lipschitz, strict=True)),
            "batch_noise": dict(zip(plan.silos, known.batch_noise, strict=True)),
            "client_noise": dict(zip(plan.silos, known.client_noise, strict=True)),
            "gradient_squared": plan.gradient_squared,
        },
        "theorems": [
            {
                "theorem": judged.theorem.name,
                "applies": judged.applies,
                "differs": list(judged.theorem.differs),
                "limit": judged.theorem.limit.stated,
                **_own_lipschitz(plan.silos, judged.theorem.lipschitz),
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
        "forecasts": [_forecast_table(outlook) for outlook in plan.outlooks],
        "warnings": list(plan.warnings),
        **({} if plan.leakage is None else {"leakage": dict(plan.leakage)}),
    }


def _own_lipschitz(silos: Sequence[str], values: Sequence[float]) -> dict[str, Any]:
    return {"block_lipschitz": dict(zip(silos, values, strict=True))} if values else {}


def _forecast_table(outlook: Outlook) -> dict[str, Any]:
    table: dict[str, Any] = {"theorem": outlook.theorem, "step_size": outlook.step_size}
    found = outlook.forecast
    if found is None:
        return table | {"rounds": None, "bytes": None, "sim_seconds": None}
    return table | {"rounds": found.rounds, "bytes": found.bytes, "sim_seconds": found.seconds}


def _print(plan: Plan, console: Console) -> None:
    """What it costs first, then what theory promises, and at the end what it does not speak of."""
    config = plan.config
    _say(
        console,
        f"{config.name}: {type(plan.algorithm).__name__} {plan.algorithm.topology}, {config.run.rounds} rounds, "
        f"T = {plan.iterations} local steps, step size {human_number(plan.step_size)}",
    )
    _say(console, "")
    console.print(keep_words(_cost(plan), console))
    _say(console, describe_network(config.network))
    if plan.leakage is not None:
        _say(console, leakage_words(plan.leakage))
    for warning in plan.warnings:
        console.print(Text(f"warning: {warning}", style="yellow"), soft_wrap=True)
    _say(console, "")
    console.print(keep_words(_forecast(plan), console))
    _say(console, UPPER)
    if any(outlook.forecast is None for outlook in _shown(plan)):
        _say(console, NEVER)
    for table in (_strategies(plan), _bounds(plan), _constants(plan)):
        _say(console, "")
        console.print(keep_words(table, console))
    for judged in plan.judgements:
        if not judged.applies:
            _say(console, f"{judged.theorem.name} does not cover this setting: {'; '.join(judged.theorem.differs)}")


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


def _say(console: Console, line: str) -> None:
    console.print(line, markup=False, highlight=False, soft_wrap=True)


def _constants(plan: Plan) -> Table:
    known = plan.constants
    table = Table(title="Estimated constants")
    for heading in ("constant", "value", "meaning"):
        table.add_column(heading, justify="right" if heading == "value" else "left", overflow="fold")
    rows: list[tuple[str, float, str]] = [
        ("F0", known.gap, "loss at the start, above 0"),
        ("rho", known.rho, "Lipschitz constant of gradient and stochastic partial derivatives"),
        ("delta", math.sqrt(known.delta_squared), "root mean square of a client's noise, worst silo"),
        ("L", known.lipschitz, "Lipschitz constant of the gradient"),
        ("L_max", known.local_lipschitz, "the largest of a client's partial derivative"),
    ]
    for name, own, batch, client in zip(
        plan.silos, known.block_lipschitz, known.batch_noise, known.client_noise, strict=True
    ):
        spread = f"noise^2 {human_number(batch)} per batch, {human_number(client)} per client"
        rows.append((f"L of {name}", own, f"partial derivative of the block; {spread}"))
    for theorem in (judged.theorem for judged in plan.judgements if judged.theorem.lipschitz):
        for name, own in zip(plan.silos, theorem.lipschitz, strict=True):
            rows.append((f"L_k of {name}", own, f"that of {theorem.name}: its scores alone"))
    rows.append(("|grad F|^2", plan.gradient_squared, "at the start"))
    for name, value, meaning in rows:
        table.add_row(Text(name), human_number(value), Text(meaning))
    return table


def _bounds(plan: Plan) -> Table:
    table = Table(title="Bounds on the averaged squared gradient norm")
    table.add_column("theorem", no_wrap=True)
    for heading in ("step-size limit", "at step size", "bound"):
        table.add_column(heading, justify="right")
    table.add_column("largest term")
    table.add_column("applies")
    for judged in sorted(plan.judgements, key=lambda judged: not judged.applies):
        limit = Text(human_number(judged.theorem.limit.stated))
        if judged.above:
            limit = Text(f"{limit}, exceeded", style="yellow" if judged.applies else "")
        table.add_row(
            judged.theorem.name, limit, human_number(judged.bound.step_size), human_number(judged.bound.value),
            judged.bound.dominant, "yes" if judged.applies else "no",
        )  # fmt: skip
    return table


def _strategies(plan: Plan) -> Table:
    table = Table(title="Adaptive strategies")
    table.add_column("strategy")
    for heading in ("P", "Q", "step size"):
        table.add_column(heading, justify="right")
    table.add_column("from", overflow="fold")
    for advice in plan.advice:
        table.add_row(
            advice.strategy, human_count(advice.global_steps), human_count(advice.local_steps),
            human_number(advice.step_size), advice.says,
        )  # fmt: skip
    return table


def _cost(plan: Plan) -> Table:
    table = Table(title="What it costs, by simulated rounds")
    table.add_column("")
    for heading in ("rounds", "sent", "simulated time"):
        table.add_column(heading, justify="right")
    for what, rounds in (("a round", 1), ("the run of the config", plan.config.run.rounds)):
        table.add_row(
            what, human_count(rounds), human_bytes(rounds * plan.cost.bytes), human_seconds(rounds * plan.cost.seconds)
        )
    return table


def _forecast(plan: Plan) -> Table:
    table = Table(title=f"At the latest: until |grad F|^2 is on average at most {human_number(plan.level)}")
    table.add_column("by", overflow="fold")
    for heading in ("step size", "rounds", "sent", "simulated time"):
        table.add_column(heading, justify="right")
    for outlook in _shown(plan):
        found = outlook.forecast
        cells = ["never", "-", "-"]
        if found is not None:
            cells = [human_count(found.rounds), human_bytes(found.bytes), human_seconds(found.seconds)]
        table.add_row(outlook.theorem, human_number(outlook.step_size), *cells)
    return table
