"""Which strategies computed the local steps, as summary.json has it: all that were seen, also over a stop."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from crosshatch.algorithms.tiered import Tiered
from crosshatch.report.page_tables import environment_table
from crosshatch.report.runs import read_runs
from crosshatch.runs.prepare import prepare
from crosshatch.runs.train import train
from crosshatch.schedules import Constant
from crosshatch.simulator.vertical.federation import SimulatedFederation
from crosshatch.simulator.vertical.groups import SimulatedServer
from tests.support.run_configs import MakeConfig
from tests.support.training import StopAt

# Ten columns, one output and Q = 4: with m rows at a client the Gram form takes 26 m + 80 multiplications of 320.
MOST_ROWS = (320 - 80) / 26
BATCH = 21  # seven rows a client of three on average: more than MOST_ROWS in some rounds


def expected(make_config: MakeConfig, rounds: range) -> dict[str, list[set[str]]]:
    """By silo, for each round what the rule has to say."""
    federation = prepare(make_config(algorithm={"batch_size": BATCH}), folder=None).simulator.federation
    assert isinstance(federation, SimulatedFederation)
    batches = [federation.draw_batch(BATCH, round=r) for r in rounds]
    rows = {name: [int(b.held[j][0].counts.max()) for b in batches] for j, name in enumerate("ab")}
    return {name: [{"gram" if m < MOST_ROWS else "stacked"} for m in seen] for name, seen in rows.items()}


def recorded(path: Path) -> dict[str, str]:
    found: dict[str, str] = json.loads((path / "summary.json").read_text())["strategy"]
    return found


def test_all_that_were_chosen(make_config: MakeConfig, out: Path) -> None:
    by_round = expected(make_config, range(6))
    kinds = {name: set().union(*seen) for name, seen in by_round.items()}
    assert kinds["a"] == {"gram", "stacked"}  # the case is one
    train(make_config(algorithm={"batch_size": BATCH}), out=out)
    assert recorded(out) == {name: ", ".join(sorted(seen)) for name, seen in kinds.items()}
    assert "gram, stacked" in environment_table(read_runs([out]))


@pytest.mark.parametrize("stop", [1, 3, 5])
def test_over_a_stop(make_config: MakeConfig, tmp_path: Path, stop: int) -> None:
    config = make_config(algorithm={"batch_size": BATCH})
    train(config, out=tmp_path / "whole")
    train(config, out=tmp_path / "parted", watcher=StopAt(stop))
    train(config, out=tmp_path / "parted", resume=True)
    assert recorded(tmp_path / "parted") == recorded(tmp_path / "whole")


def test_over_all_groups(make_config: MakeConfig) -> None:
    config = make_config(federation={"groups": 3})
    config = replace(config, algorithm=Tiered(tiers="H(8) V(4) H(4)", step_size=Constant(0.1), batch_size=7))
    simulator = prepare(config, folder=None).simulator
    simulator.run_round()
    assert isinstance(simulator.federation, SimulatedServer)
    chosen = [group.chosen for group in simulator.federation.groups]
    assert simulator.strategies == {"a": "gram", "b": "gram"}  # groups alike are solved in one go
    chosen[1]["a"] = {"stacked"}
    assert simulator.strategies == {"a": "gram, stacked", "b": "gram"}
