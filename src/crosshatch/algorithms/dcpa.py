"""DCPA: consensus on the dual over a graph, the decentralised baseline.

After Alghunaim, Lyu, Yan, Sayed, *Dual consensus proximal algorithm for multi-agent sharing problems* (IEEE TSP 2021);
the updates for our objective are derived in docs/algorithms/dcpa.md.   w_k: block   y_k: dual, agent k's opinion of the
loss's derivative   x_k: multiplier that makes the opinions agree   mu_w: step_size   mu_y: dual_step
mu_x: consensus_step

A round is one iteration, in which every agent sends its dual to every neighbour: 2 |E| communications.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from crosshatch.errors import ConfigError
from crosshatch.exchanges import DualFederation, Duals, Planned
from crosshatch.graphs import Graph

Step = float | Literal["auto"]


@dataclass(frozen=True)
class DCPA(Planned):
    """Dual consensus proximal algorithm.

    Steps left at "auto" follow from the blocks' norms, the graph and the given ones.

    >>> DCPA(step_size=0.01, dual_step=0.0003, consensus_step=0.03).local_steps
    1
    """

    step_size: Step = "auto"
    dual_step: Step = "auto"
    consensus_step: Step = "auto"
    graph: Graph = Graph()

    shape = "V(1)"
    has_schedule = False
    finds_step = True
    local_steps: ClassVar[int] = 1

    def __post_init__(self) -> None:
        steps = {"step_size": self.step_size, "dual_step": self.dual_step, "consensus_step": self.consensus_step}
        for name, value in steps.items():
            if value != "auto" and not (isinstance(value, int | float) and 0 < value < float("inf")):
                raise ConfigError(f"algorithm.{name} = {value!r}: give a positive number or 'auto'")
        super().__post_init__()

    def run_round(self, fed: DualFederation[Duals], duals: Duals, r: int) -> Duals:
        duals = fed.descend(duals)  # w: against the agent's own dual
        duals = fed.compare(duals, round=r)  # x: against the neighbours' duals
        return fed.ascend(duals)  # y: with w and x extrapolated
