"""A new algorithm takes a line in the table of names, and nothing else: it is planned, tried, refused and resumed."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Self

import pytest

from crosshatch import Topology
from crosshatch.errors import ConfigError
from crosshatch.exchanges import LocalSteps, Planned, Within
from crosshatch.runs import config_names
from crosshatch.runs.choosing.auto import require_planned
from crosshatch.runs.config import Config, decode_config
from crosshatch.runs.planning.plan import make_plan
from crosshatch.runs.prepare import prepare, used_exchanges
from crosshatch.runs.train import train
from crosshatch.schedules import Adaptive, Schedule, rate


def run_round(algorithm: Any, fed: Any, blocks: Any, r: int) -> Any:
    """A round of TDCD."""
    batch = fed.draw_batch(algorithm.batch_size, round=r)
    blocks = fed.broadcast(blocks, batch)
    frozen = fed.share(fed.embed(blocks, batch), batch)
    step_size = rate(algorithm.step_size, r)
    blocks = fed.descend(blocks, batch, frozen, LocalSteps(algorithm.local_steps, step_size))
    return fed.average(blocks, batch)


@dataclass(frozen=True)
class TwoSpeed(Planned):
    """TDCD with a second interval, half of the first where that is left open."""

    local_steps: int = 4
    half: int = 2
    step_size: Schedule | float = 0.1
    batch_size: int | None = 32

    auto = ("local_steps", "step_size")
    run_round = run_round

    @property
    def unlike_theory(self) -> tuple[str, ...]:
        return ("there are two speeds",)

    @property
    def topology(self) -> Topology:
        return Topology.parse(f"V({self.local_steps}) H({self.local_steps})")

    def with_interval(self, steps: int) -> Self:
        return replace(self, local_steps=steps, half=max(1, steps // 2))


@dataclass(frozen=True)
class Together(Planned):
    """TDCD without hubs, averaged over the whole federation, which no theorem is about."""

    local_steps: int = 4
    step_size: Schedule | float = 0.1
    batch_size: int | None = 32

    within: ClassVar[Within] = "federation"
    run_round = run_round

    @property
    def topology(self) -> Topology:
        return Topology.parse(f"V({self.local_steps})")


@pytest.fixture(autouse=True)
def listed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two lines in the table of names; whoever imported the table sees them."""
    for name, kind in {"two_speed": TwoSpeed, "together": Together}.items():
        monkeypatch.setitem(config_names.ALGORITHMS, name, kind)
    monkeypatch.setattr(config_names, "AnyAlgorithm", config_names.AnyAlgorithm | TwoSpeed | Together)


def config(clients: int = 3, **algorithm: object) -> Config:
    return decode_config(
        {
            "data": {"name": "wine"},
            "federation": {"silos": 2, "clients": clients},
            "algorithm": {"name": "two_speed"} | algorithm,
            "run": {"name": "new", "rounds": 3, "threads": 1},
            "evaluate": {"every": 1},
        }
    )


def test_it_is_planned() -> None:
    plan = make_plan(config())
    assert all("there are two speeds" in judgement.theorem.differs for judgement in plan.judgements)
    assert (plan.global_steps, plan.local_steps) == (4, 4)


def test_theory_fills_in_what_is_auto() -> None:
    tables = config(local_steps="auto", step_size="auto")
    assert tables.auto == ("local_steps", "step_size")
    chosen: Any = prepare(tables, folder=None).config.algorithm
    assert isinstance(chosen, TwoSpeed)
    assert isinstance(chosen.step_size, Adaptive)
    assert chosen.half == max(1, chosen.local_steps // 2)


def test_trials_fill_in_what_is_measured(tmp_path: Path) -> None:
    tables = config(local_steps="measure")
    assert tables.measured == ("local_steps",)
    train(tables, out=tmp_path / "run")
    written = (tmp_path / "run" / "config.toml").read_text(encoding="utf-8")
    assert 'name = "two_speed"' in written
    assert '"measure"' not in written


def test_words_it_does_not_take_are_refused() -> None:
    with pytest.raises(ConfigError, match='local_steps = \'few\': expected a whole number, "auto" or "measure"'):
        config(local_steps="few")
    with pytest.raises(ConfigError, match=r"algorithm\.step_size"):
        config(name="together", step_size="auto")


def test_it_is_not_planned_where_no_theorem_is_about_it() -> None:
    with pytest.raises(ConfigError, match=r"'together': no convergence theorem .* tiered, two_speed to plan"):
        require_planned(config(name="together"))


def test_where_its_clients_are_averaged_says_what_may_have_a_codec() -> None:
    simulator = prepare(config(clients=1, name="together"), folder=None).simulator
    assert used_exchanges(simulator) == ("share", "broadcast", "average")


def test_the_table_is_the_one_that_commands_use() -> None:
    assert config_names is sys.modules["crosshatch.runs.config_names"]
    assert config_names.planned_names() == ("fedsgd", "fedbcd", "abcd", "tdcd", "hsgd", "tiered", "two_speed")
