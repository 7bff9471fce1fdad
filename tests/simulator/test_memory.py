"""A memory from round to round: what it may hold, and what is said where there is none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch

from crosshatch import BandwidthNetwork, Link, Topology
from crosshatch.errors import ConfigError
from crosshatch.exchanges import LocalSteps
from crosshatch.simulator.simulator import Simulator
from crosshatch.simulator.vertical.memory import pack, unpack
from crosshatch.testing.check_values import same_value
from crosshatch.testing.federations import make_data, make_task
from crosshatch.testing.parties.engine import PartyByParty


@dataclass(frozen=True)
class Remembering:
    """Steps on this exchange and those that `keep` has put into the memory, which ends as `keep` says."""

    keep: Callable[[Any, Any, Any], Any]  # blocks, exchange, memory
    groups: bool = False
    local_steps: int = 3
    step_size: float = 0.1

    remembers = True

    @property
    def topology(self) -> Topology:
        return Topology.parse("H(3) V(3) H(3)" if self.groups else "V(3) H(3)")

    def run_round(self, fed: Any, blocks: Any, r: int, memory: Any) -> Any:
        batch = fed.draw_batch(8, round=r)
        blocks = fed.broadcast(blocks, batch)
        exchange = (batch, fed.share(fed.embed(blocks, batch), batch))
        earlier = memory[0]["earlier"] if memory else ()
        blocks = fed.descend(blocks, *exchange, LocalSteps(3, 0.1), earlier=earlier)
        return self.keep(fed.average(blocks, batch), exchange, memory)


@pytest.mark.parametrize("engine", [Simulator, PartyByParty])
@pytest.mark.parametrize("groups", [0, 2, 3])
@pytest.mark.parametrize(
    "keep", [lambda blocks, *_: blocks, lambda blocks, *_: (blocks, None), lambda blocks, *_: (blocks, [], ())]
)
def test_a_round_without_a_memory_is_refused_by_name(engine: Any, groups: int, keep: Any) -> None:
    data = make_data((2, 2), groups=[10] * groups) if groups else make_data((2, 2))
    algorithm = Remembering(keep, groups=bool(groups))
    words = "algorithm Remembering declares `remembers`, but .* `return blocks, memory`, or declare `remembers = False`"
    with pytest.raises(ConfigError, match=words):
        engine(data, make_task(2), algorithm).run_round()


def test_lists_and_tables_come_back_bit_for_bit() -> None:
    def keep(blocks: Any, exchange: Any, memory: Any) -> Any:
        earlier = [exchange, *(memory[0]["earlier"] if memory else ())][:2]
        return blocks, ({"earlier": earlier, "note": "kept", "none": None, 3: np.arange(3)}, 0.5, torch.ones(2))

    data, task, algorithm = make_data((2, 2)), make_task(2), Remembering(keep)
    whole, resumed = (Simulator(data, task, algorithm, threads=1, precision=torch.float64) for _ in range(2))
    for _ in range(3):
        whole.run_round()
    whole.align()
    resumed.restore(*whole.snapshot())
    for simulator in (whole, resumed):
        simulator.run_round()
    assert all(map(torch.equal, whole.weights, resumed.weights))
    state: Any = whole.state
    table, number, tensor = unpack(pack(state.memory), torch.device("cpu"))
    assert (table["note"], table["none"], table[3].tolist(), number) == ("kept", None, [0, 1, 2], 0.5)
    assert torch.equal(tensor, torch.ones(2))
    assert same_value(unpack(pack(state.memory), torch.device("cpu")), state.memory)


def test_what_a_memory_cannot_hold_is_named_with_what_it_can() -> None:
    for value in ({1, 2}, object()):
        with pytest.raises(ConfigError, match=f"holds a {type(value).__name__}: it may hold batches, .* and dicts"):
            pack((value,))


def test_a_batch_from_an_earlier_round_takes_the_same_time_after_a_resume() -> None:
    """Odd rounds have no batch of their own: clients go on with the one of the round before."""

    class EveryOther(Remembering):
        def run_round(self, fed: Any, blocks: Any, r: int, memory: Any) -> Any:
            if r % 2 == 0:
                batch = fed.draw_batch(6, round=r)
                memory = (batch, fed.exchange(fed.embed(fed.broadcast(blocks, batch), batch), batch))
            blocks = fed.broadcast(blocks, memory[0])
            return fed.average(fed.descend(blocks, *memory, LocalSteps(3, 0.1)), memory[0]), memory

    data, task, algorithm = make_data((2, 4)), make_task(2), EveryOther(lambda *_: None)
    network = BandwidthNetwork(links={"client-hub": Link(0.5, 1e-3, 1e-3)}, step_seconds=1.0, slow={"silo1/1": 7.0})
    whole, resumed = (Simulator(data, task, algorithm, threads=1, network=network) for _ in range(2))
    for _ in range(3):
        whole.run_round()
    resumed.restore(*whole.snapshot())
    for simulator in (whole, resumed):
        simulator.run_round()
    assert whole.seconds == resumed.seconds > 0
