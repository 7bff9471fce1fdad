"""Clients that share a process: the same model to the bit, and no library loaded that a party has no use for."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch

from crosshatch.parties.recovery.packed_state import unpack
from crosshatch.parties.seeing_all import model_of, total
from crosshatch.runs.config import read_config
from crosshatch.runs.launching.launch import launch
from crosshatch.runs.launching.process_plan import ProcessPlan
from crosshatch.runs.prepare import prepare
from crosshatch.runtime.store import Store
from crosshatch.testing.parties.engine import PartyByParty

CONFIG = """
data = {name = "breast_cancer"}
federation = {silos = 2, clients = 3}
model = {block = "mlp"}
algorithm = {name = "tdcd", local_steps = 3, batch_size = 32, step_size = 0.1}
evaluate = {every = 4, metrics = ["loss"]}
run = {rounds = 8, precision = "float64", threads = 1, processes = "silo"}
"""
SLOW = ("sklearn", "polars", "typer", "scipy", "networkx", "pandas", "matplotlib", "torch._dynamo")
AT_THE_END = f"""
import atexit, os, sys
atexit.register(lambda: open(os.environ["LOADED"] + f"/{{os.getpid()}}", "w").write(
    " ".join(name for name in {SLOW!r} if name in sys.modules)))
"""


def test_clients_of_a_silo_share_a_process_and_load_little(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "loaded").mkdir()
    (tmp_path / "sitecustomize.py").write_text(AT_THE_END)
    (tmp_path / "config.toml").write_text(CONFIG)
    monkeypatch.setenv("LOADED", str(tmp_path / "loaded"))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]))
    config, out = read_config(tmp_path / "config.toml"), tmp_path / "out"
    assert launch(config, out=out).finished

    houses = {home.name: home for home in (out / "parties").iterdir()}
    assert sorted(houses) == ["clients-0-0", "clients-0-1", "hub-0-0", "hub-0-1"]
    for home in houses.values():
        assert (tmp_path / "loaded" / (home / "pid").read_text()).read_text() == ""

    simulator = prepare(read_config(out / "config.toml"), folder=None).simulator
    found, wanted = (
        PartyByParty(
            simulator.data, simulator.task, simulator.algorithm, seed=config.run.seed, precision=torch.float64,
            steps="solved",
        )
        for _ in range(2)
    )  # fmt: skip
    for _ in range(config.run.rounds):
        wanted.run_round()
    for name, party in found.parties.items():
        (home,) = (out / "parties").glob(f"*/{name}")
        written = Store(home).read(config.run.rounds)
        assert written is not None
        party.load(unpack(written, run=ProcessPlan.read(home.parent).run, party=name).value)
    assert all(map(torch.equal, model_of(found.parties), wanted.weights))
    assert total(party.meter for party in found.parties.values()) == wanted.meter
