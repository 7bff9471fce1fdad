"""A memory from round to round: what it may hold, and what is said where there is none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch

from crosshatch import Topology
from crosshatch.errors import ConfigError
from crosshatch.simulator.memory import pack, unpack
from crosshatch.simulator.simulator import Simulator
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
        blocks = fed.descend(blocks, *exchange, steps=3, step_size=0.1, earlier=earlier)
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
    assert all(frozen.worked_out for _, frozen in state.memory[0]["earlier"])  # nothing else of the round is kept


def test_what_a_memory_cannot_hold_is_named_with_what_it_can() -> None:
    for value in ({1, 2}, object()):
        with pytest.raises(ConfigError, match=f"holds a {type(value).__name__}: it may hold batches, .* and dicts"):
            pack((value,))
