"""A silo that has the labels and nothing else: no block, no local steps of its own, and no message about a block."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch
from torch import Tensor

from crosshatch import (
    HSGD,
    TDCD,
    Central,
    FedBCD,
    FederationSettings,
    FedSGD,
    ModelSettings,
    SiloSettings,
    Simulator,
    build_task,
    federate,
    load_dataset,
    load_run,
    read_config,
    train,
)
from crosshatch.cli import main
from crosshatch.data.federated import FederatedData
from crosshatch.errors import CrosshatchError
from crosshatch.task.task import Task
from crosshatch.testing.parties.engine import PartyByParty

FEATURES = (SiloSettings("a", span=(0, 12)), SiloSettings("b", span=(12, 30)))
SETTINGS = FederationSettings(silos=(*FEATURES, SiloSettings("court")), labels="court")
ALGORITHMS: dict[str, Any] = {
    "fedsgd": FedSGD(0.1, 64),
    "fedbcd": FedBCD(3, 0.1, 64),
    "turns": FedBCD(3, 0.1, 64, order="sequential"),
    "tdcd": TDCD(3, 0.1, 64),
    "each step": TDCD(3, 0.1, 64, derivatives="each_step"),
}


def case(fusion: str = "sum", **changes: Any) -> tuple[FederatedData, Task]:
    data = federate(load_dataset("breast_cancer"), replace(SETTINGS, **changes), seed=0)
    settings: Any = {"fusion": fusion, "outputs": 4} if fusion == "head" else {"fusion": fusion}
    return data, build_task(data, ModelSettings(**settings), seed=0)


def run(data: FederatedData, task: Task, algorithm: Any, rounds: int = 4) -> Simulator:
    simulator = Simulator(data, task, algorithm, seed=0, threads=1, precision=torch.float64)
    for _ in range(rounds):
        simulator.run_round()
    return simulator


def test_it_has_no_block() -> None:
    data, task = case()
    assert [tuple(silo.train.shape[1:]) for silo in data.silos] == [(12,), (18,), (0,)]
    assert [len(weights) for weights in task.initial()] == [13, 19, 0]
    assert "silo 'court' has the labels and no columns" in map(str, data.notes)
    _, with_head = case("head")
    assert [len(weights) for weights in with_head.initial()] == [52, 76, 9]  # the head takes 4 + 4 numbers


WITH_HEAD = [name for name in ALGORITHMS if name != "turns"]  # in turns it is refused where labels are held


@pytest.mark.parametrize(
    ("name", "fusion"), [*((name, "sum") for name in ALGORITHMS), *((name, "head") for name in WITH_HEAD)]
)
def test_parties_that_know_only_what_is_theirs_come_to_the_same(name: str, fusion: str) -> None:
    data, task = case(fusion)
    simulator, parties = run(data, task, ALGORITHMS[name]), PartyByParty(data, task, ALGORITHMS[name], seed=0)
    for _ in range(4):
        parties.run_round()
    for one, other in zip(simulator.weights, parties.weights, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-11)
    assert simulator.meter.links == parties.meter.links
    assert simulator.meter.exchanges == parties.meter.exchanges


@pytest.mark.parametrize("name", ALGORITHMS)
def test_the_others_do_as_with_a_holder_whose_only_column_is_zero(name: str) -> None:
    """What the holder adds to the scores is zero in both; only the messages about its block differ."""
    data, task = case()
    court = data.silos[2]
    zeros = replace(
        court, train=torch.zeros(len(court.train), 1), test=torch.zeros(len(court.test), 1), features=("0",)
    )
    other = replace(data, silos=(*data.silos[:2], zeros))
    block = torch.nn.Linear(1, 1, bias=False)
    torch.nn.init.zeros_(block.weight)
    alone, dull = (
        run(data, task, ALGORITHMS[name]),
        run(other, replace(task, blocks=(*task.blocks[:2], block)), ALGORITHMS[name]),
    )
    for one, theirs in zip(alone.weights[:2], dull.weights[:2], strict=True):
        torch.testing.assert_close(one, theirs, rtol=1e-12, atol=1e-14)
    for exchange in ("share", "derivatives"):
        assert alone.meter.exchanges[exchange] == dull.meter.exchanges[exchange]
    if "broadcast" in dull.meter.exchanges:  # two of three silos send blocks
        assert 3 * alone.meter.exchanges["broadcast"][1] == 2 * dull.meter.exchanges["broadcast"][1]
        assert 3 * alone.meter.exchanges["average"][1] == 2 * dull.meter.exchanges["average"][1]


def test_one_step_per_round_is_plain_logistic_regression() -> None:
    data, task = case()
    simulator = run(data, task, FedSGD(0.1, None), rounds=5)
    x = torch.cat([silo.train for silo in data.silos], dim=1).double()
    x = torch.cat([x, torch.ones(len(x), 1).double()], dim=1)
    w = torch.zeros(31, dtype=torch.float64)
    for _ in range(5):
        gradient = x.T @ (torch.sigmoid(x @ w) - data.y_train.double()) / len(x)
        gradient[-1] *= 2  # two blocks have a bias each
        w -= 0.1 * gradient
    a, b = simulator.weights[:2]
    found: Tensor = torch.cat([a[:12], b[:18]])
    torch.testing.assert_close(found, w[:30], rtol=1e-9, atol=1e-12)
    central = run(data, task, Central(step_size=0.1), rounds=5)
    torch.testing.assert_close(central.weights[0], a, rtol=1e-9, atol=1e-12)


def test_groups() -> None:
    data, task = case(groups=3)
    algorithm: Any = HSGD(6, 3, 0.1)
    simulator, parties = run(data, task, algorithm), PartyByParty(data, task, algorithm, seed=0)
    for _ in range(4):
        parties.run_round()
    for one, other in zip(simulator.weights, parties.weights, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-11)
    assert simulator.meter.links == parties.meter.links


CONFIG = """
data = {id = "id", label = "label"}
federation.labels = "court"
federation.silos = [
  {name = "bank", path = "bank.csv"}, {name = "shop", path = "shop.csv"}, {name = "court", path = "court.csv"},
]
algorithm = {name = "fedbcd", local_steps = 3, step_size = 0.3}
run = {rounds = 10, threads = 1}
"""


@pytest.fixture(name="folder")
def folder_of_three(tmp_path: Path) -> Path:
    draw = np.random.default_rng(0)
    a, b, c = draw.normal(size=(3, 120))
    ids = np.arange(120)
    pl.DataFrame({"id": ids, "a": a, "b": b}).write_csv(tmp_path / "bank.csv")
    pl.DataFrame({"id": ids[5:], "c": c[5:]}).write_csv(tmp_path / "shop.csv")
    pl.DataFrame({"id": ids[::-1], "label": (a + c > 0)[::-1].astype(int)}).write_csv(tmp_path / "court.csv")
    (tmp_path / "three.toml").write_text(CONFIG)
    return tmp_path


@pytest.mark.parametrize("fusion", ["sum", "head"])
def test_files_and_predictions_without_that_party(folder: Path, fusion: str) -> None:
    outcome = train(read_config(folder / "three.toml", [f"model.fusion={fusion}"]), out=folder / "run")
    assert outcome.summary["final"]["accuracy"] > 0.8
    run = load_run(folder / "run")
    found = run.predict([folder / "bank.csv", folder / "shop.csv"], common=True)
    assert len(found.ids) == 115
    prepared = run.prepare([folder / "bank.csv", folder / "shop.csv"], common=True)
    assert [tuple(x.shape[1:]) for x in prepared.xs] == [(2,), (1,), (0,)]
    with torch.no_grad():
        torch.testing.assert_close(run.module()(*prepared.xs).numpy(), found.scores)
    assert len(run.predict().ids) == 23  # a fifth of 115


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("federation.labels=shared", "silo 'court' has no columns: .* holds the labels alone"),
        ("federation.silos.2.clients=3", "silo 'court' has the labels and no columns, and 3 clients: .* clients = 1"),
        ("model.blocks.court.block=mlp", r"model\.blocks\.court: this silo has the labels and no columns"),
        ("federation.labels=bank", "federation.labels = 'bank', but label 'label' is in"),
    ],
)
def test_refusals(folder: Path, change: str, words: str) -> None:
    changes = [change, "algorithm.name=tdcd"]
    with pytest.raises(CrosshatchError, match=words):
        train(read_config(folder / "three.toml", changes), out=folder / "run")
    assert not (folder / "run").exists()


def test_it_can_be_planned(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["plan", str(folder / "three.toml")])
    assert ended.value.code == 0
    assert "court" in capsys.readouterr().out
