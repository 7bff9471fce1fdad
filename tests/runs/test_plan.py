"""`crosshatch plan` against closed forms: a quadratic in a CSV file, read, split and planned from a config alone."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from crosshatch.cli import main
from crosshatch.report.units import human_bytes, human_seconds
from crosshatch.runs.config import decode_config
from crosshatch.runs.planning.plan import make_plan
from tests.support.run_configs import MakeConfig
from tests.theory.quadratics import Quadratic, random_quadratic

WITHIN = 0.1
DIMS = (3, 4)
NAMES = tuple(f"x{i}" for i in range(sum(DIMS)))


def write(quadratic: Quadratic, path: Path) -> None:
    """Rows ordered by group, device and sample; every device's design is the same, its labels have noise of its own."""
    copies = quadratic.clients * quadratic.draws
    columns = dict(zip(NAMES, np.tile(quadratic.x, (copies, 1)).T, strict=True))
    labels = (quadratic.y + quadratic.noise).reshape(-1)
    groups = np.repeat(np.arange(quadratic.clients), quadratic.draws * len(quadratic.y))
    devices = np.repeat(np.arange(copies), len(quadratic.y))
    pl.DataFrame({**columns, "y": labels, "group": groups, "device": devices}).write_csv(path)


def tables(path: Path, algorithm: dict[str, Any], *, seed: int, federated: bool) -> dict[str, Any]:
    hospital: dict[str, Any] = {"name": "hospital", "columns": list(NAMES[: DIMS[0]])}
    device: dict[str, Any] = {"name": "device", "columns": list(NAMES[DIMS[0] :])}
    federation: dict[str, Any] = {"silos": [hospital, device]}
    if federated:
        device["samples"] = {"kind": "column", "column": "device"}
        federation["group_samples"] = {"kind": "column", "column": "group"}
    return {
        "data": {
            "path": str(path), "test_path": str(path), "label": "y", "target": "regression", "standardise": False,
        },
        "federation": federation,
        "model": {"block": "linear", "bias": False},
        "algorithm": algorithm,
        "run": {"name": "quadratic", "rounds": 20, "seed": seed, "threads": 1, "precision": "float64"},
    }  # fmt: skip


@pytest.mark.parametrize("seed", range(3))
def test_rho_and_delta_of_a_quadratic(tmp_path: Path, seed: int) -> None:
    quadratic = random_quadratic(seed, dims=DIMS, clients=3, draws=8)
    write(quadratic, tmp_path / "q.csv")
    selected = 2 + seed
    algorithm = {
        "name": "hsgd",
        "global_steps": 4,
        "local_steps": 2,
        "step_size": 1e-4,
        "fraction": selected / 8,
    }
    plan = make_plan(decode_config(tables(tmp_path / "q.csv", algorithm, seed=seed, federated=True)))
    exact = quadratic.grouped_constants(selected)
    hospital, device = (np.square(quadratic.pushes[..., block]).sum(-1).mean() for block in quadratic.slices)
    hospital *= (8 - selected) / (selected * 7)  # the mean of so many of eight devices, drawn without replacement
    assert plan.constants.rho == pytest.approx(exact.rho, rel=WITHIN)
    assert math.sqrt(plan.constants.delta_squared) == pytest.approx(math.sqrt(max(hospital, device)), rel=WITHIN)
    labels = quadratic.y + quadratic.noise
    assert plan.constants.gap == pytest.approx(np.square(labels).mean() / 2)  # weights start at zero
    assert plan.gradient_squared == pytest.approx(np.square(quadratic.gradient(np.zeros(7))).sum(), rel=1e-4)
    (judged,) = [judged for judged in plan.judgements if judged.applies]
    assert judged.theorem.name == "HSGD, Theorem 1"
    assert judged.theorem.limit.stated == pytest.approx(1 / (8 * 4 * plan.constants.rho))
    assert not judged.above
    assert plan.warnings == ()


def test_limits_without_noise_and_the_warning_above_them(tmp_path: Path) -> None:
    quadratic = random_quadratic(1, dims=DIMS)
    write(quadratic, tmp_path / "q.csv")
    algorithm = {"name": "fedbcd", "local_steps": 3, "step_size": 100.0}
    plan = make_plan(decode_config(tables(tmp_path / "q.csv", algorithm, seed=0, federated=False)))
    largest = float(np.linalg.norm(quadratic.matrix, 2))
    rows = [float(np.linalg.norm(quadratic.matrix[block], 2)) for block in quadratic.slices]
    total = sum(row**2 for row in rows)
    expected = {
        "FedBCD, Theorem 2": min(math.sqrt(0.5 / (total + 3 * max(rows) ** 2)) / 3, 1 / largest),
        "ICASSP, Theorem 4.1": max(np.roots([-((3 * max(rows)) ** 2), -largest, 1]).real),
        "TDCD, Theorem 1": 1 / (24 * largest),
        "HSGD, Theorem 1": 1 / (24 * largest),
    }
    assert plan.constants.rho == pytest.approx(largest, rel=WITHIN)
    assert plan.constants.delta_squared < 1e-10
    for judged in plan.judgements:
        name, limit = judged.theorem.name, judged.theorem.limit.stated
        assert limit == pytest.approx(expected[name], rel=WITHIN)
        assert judged.applies
        assert judged.above
        assert judged.bound.step_size == limit
        assert judged.bound.dominant == "start"
        assert f"{limit:.4g} ({name})" in plan.warnings[0]
    assert len(plan.warnings) == 1
    assert "lower algorithm.step_size if the loss rises" in plan.warnings[0]
    assert [advice.strategy for advice in plan.advice] == ["1", "2 paper", "2 derived", "3"]  # no noise: no "auto"


def test_cost_and_forecast(make_config: MakeConfig) -> None:
    """A round costs what a run says it does; forecasts are that many rounds of it."""
    from crosshatch.runs.prepare import prepare

    config = make_config(algorithm={"step_size": 0.001, "local_steps": 2})
    plan = make_plan(config, level=0.5)
    simulator = prepare(config, folder=None).simulator
    for _ in range(3):
        simulator.run_round()
    assert plan.cost.seconds == simulator.seconds / 3 == 3 * 10.0 + 2 * 1.0
    assert plan.cost.bytes == pytest.approx(simulator.meter.bytes / 3, rel=0.01)
    found = {outlook.theorem: outlook for outlook in plan.outlooks}["TDCD, Theorem 1"]
    assert found.step_size == 0.001
    assert found.rounds is not None
    (bound,) = [judged.bound for judged in plan.judgements if judged.theorem.name == "TDCD, Theorem 1"]
    needed = 4 * plan.constants.gap / 0.001 / (0.5 - bound.noise - bound.drift)
    assert found.rounds == math.ceil(math.ceil(needed) / 2)
    assert found.sim_seconds == found.rounds * 32.0


@pytest.mark.parametrize(
    ("changes", "theorem", "reason"),
    [
        ({"algorithm": {"batches": "fresh"}}, "TDCD, Theorem 1", "every step draws a batch"),
        ({}, "ICASSP, Theorem 4.1", "reuses its batch"),
        ({}, "FedBCD, Theorem 2", "several clients"),
        ({"codecs": {"share": "topk(0.5)"}}, "TDCD, Theorem 1", "compressed"),
        ({"model": {"l1": 0.1}}, "TDCD, Theorem 1", "L1"),
        (
            {"federation": {"labels": "a"}, "algorithm": {"derivatives": "each_round"}},
            "TDCD, Theorem 1",
            "derivatives are kept",
        ),
    ],
)
def test_theorems_about_other_settings(
    make_config: MakeConfig, changes: dict[str, Any], theorem: str, reason: str
) -> None:
    plan = make_plan(make_config(**changes))
    (judged,) = [judged for judged in plan.judgements if judged.theorem.name == theorem]
    assert any(reason in difference for difference in judged.theorem.differs)


def test_four_tiers() -> None:
    config = decode_config({
        "data": {"name": "breast_cancer"}, "federation": {"silos": 2, "groups": [2, 2], "clients": 2},
        "algorithm": {"name": "tiered", "tiers": "H(8) H(4) V(2) H(1)", "batch_size": 16},
        "run": {"name": "tiers", "rounds": 8, "threads": 1},
    })  # fmt: skip
    plan = make_plan(config)
    assert (plan.global_steps, plan.local_steps) == (8, 2)
    assert not any(judged.applies for judged in plan.judgements)
    assert "no theorem covers this setting" in " ".join(plan.warnings)


Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def command(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    """`command("--json")` plans a small config on wine."""
    monkeypatch.delenv("CROSSHATCH_DATA", raising=False)
    path = tmp_path / "wine.toml"
    path.write_text(
        'data = {name = "wine"}\nalgorithm = {name = "fedbcd", batch_size = 32}\nrun = {rounds = 20, threads = 1}\n'
    )

    def run(*options: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as caught:
            main(["plan", str(path), *options])
        printed = capsys.readouterr()
        return int(caught.value.code or 0), printed.out, printed.err

    return run


def test_json_is_the_same_for_the_same_seed(command: Command) -> None:
    code, first, errors = command("--json")
    assert (code, errors) == (0, "")
    assert command("--json")[1] == first
    assert command("--json", "--set", "run.seed=1")[1] != first
    read = json.loads(first)
    assert [theorem["theorem"] for theorem in read["theorems"]] == [
        "FedBCD, Theorem 2", "ICASSP, Theorem 4.1", "TDCD, Theorem 1", "HSGD, Theorem 1",
    ]  # fmt: skip
    assert read["constants"]["rho"] > 0
    assert read["run"]["bytes"] == 20 * read["round"]["bytes"]
    assert read["theorems"][0]["applies"]


def test_tables(command: Command) -> None:
    code, printed, _ = command("--target-gradient", "0.5")
    assert code == 0
    for words in (
        "Estimated constants", "FedBCD, Theorem 2", "2 paper", "(the default)", "2 derived", "at most 0.5",
        "An upper bound by theory: expect far fewer.", "warning: algorithm.step_size = 0.1 is above",
    ):  # fmt: skip
        assert words in printed
    assert "\x1b" not in printed


def test_what_it_costs_comes_first_and_what_does_not_apply_last(command: Command) -> None:
    _, printed, _ = command()
    lines = printed.splitlines()
    read = json.loads(command("--json")[1])
    run = next(line for line in lines if "the run of the config" in line)
    assert f" {human_bytes(read['run']['bytes'])} " in run
    assert f" {human_seconds(read['run']['sim_seconds'])} " in run
    places = [next(i for i, line in enumerate(lines) if words in line) for words in (
        "What it costs", "constant network: 10 s per round trip", "At the latest", "Bounds on", "does not cover",
    )]  # fmt: skip
    assert places == sorted(places)
    forecast = "\n".join(lines[places[2] : next(i for i, line in enumerate(lines) if "Adaptive" in line)])
    told = [theorem["theorem"] for theorem in read["theorems"] if theorem["theorem"] in forecast]
    assert told == [theorem["theorem"] for theorem in read["theorems"] if theorem["applies"]] != []


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--set", "algorithm.name=central"), "algorithm.name = 'central': no convergence theorem"),
        (("--target-gradient", "0"), "--target-gradient 0: "),
        (("--target-gradient", "nan"), "--target-gradient nan: "),
        (("--data", "/nowhere"), "no data folder /nowhere"),
        (("--set", "algorithm.batch_size=100000"), "algorithm.batch_size = 100000"),
        (("--set", "algorithm.batch_size=", "--set", "algorithm.local_steps=auto"), "Q* is above 1000"),
    ],
)
def test_mistakes_are_one_line(command: Command, options: tuple[str, ...], words: str) -> None:
    code, printed, errors = command(*options)
    assert (code, printed) == (2, "")
    assert errors.startswith("error: ")
    assert words in errors
    assert errors.count("\n") == 1


def test_a_warning_where_nearly_all_clients_are_idle(make_config: MakeConfig) -> None:
    algorithm: dict[str, Any] = {"name": "tdcd", "batch_size": 3, "local_steps": 2}
    found = make_plan(make_config(algorithm=algorithm, federation={"clients": "each"}))
    assert any("set algorithm.weights = 'at_work'" in warning for warning in found.warnings)
    mended = make_plan(make_config(algorithm=algorithm | {"weights": "at_work"}, federation={"clients": "each"}))
    assert not any("at_work" in warning for warning in mended.warnings)
