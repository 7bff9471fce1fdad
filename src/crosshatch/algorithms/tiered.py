"""Any `H* V H*`: every tier does its exchange at its own interval, with local steps in between.

The tiers above the vertical one average whole groups (regions, hospitals), the first below it averages a silo's clients
at its hub, further ones average the clients of its branches.
TDCD is `V(Q) H(Q)`, HSGD `H(P) V(Q) H(Q)` with a trained head and averages over the clients at work.
"""

from __future__ import annotations

from dataclasses import dataclass

from crosshatch.errors import ConfigError
from crosshatch.exchanges import Batch, Blocks, ClientWeights, DrawsBatches, Embeddings, Federation, Frozen, LocalSteps
from crosshatch.schedules import Schedule, rate
from crosshatch.topology import Topology


@dataclass(frozen=True)
class Tiered(DrawsBatches):
    """General tiers, written outermost first with their intervals in local steps.

    A round reaches from one vertical exchange to the next. Its samples are `batch_size` of every group (None: all), or
    with `fraction` those of a fraction of the clients. `weights` says how a silo averages its clients.

    >>> Tiered(tiers="H(40) H(20) V(10) H(5)").local_steps
    10
    """

    tiers: str = "V(10) H(10)"
    step_size: Schedule | float = 0.1
    batch_size: int | None = None
    fraction: float | None = None
    weights: ClientWeights = "equal"

    returns_blocks = True
    auto = ("step_size",)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.fraction is not None and self.batch_size is not None:
            raise ConfigError("algorithm.batch_size and algorithm.fraction both choose the samples: give one of them")
        if self.topology.vertical is None:
            raise ConfigError(f"algorithm.tiers = '{self.tiers}' has no vertical tier: add V(Q), or use 'fedavg'")

    @property
    def topology(self) -> Topology:
        return Topology.parse(self.tiers)

    @property
    def several_clients(self) -> str:
        """The same with a tier below."""
        topology = self.topology
        return "" if topology.below else f"algorithm.tiers = '{topology} H({topology.tiers[-1].interval})'"

    @property
    def local_steps(self) -> int:
        """Steps of a round: the interval of the vertical tier."""
        vertical = self.topology.vertical
        assert vertical is not None
        return self.topology.tiers[vertical].interval

    def run_round(self, fed: Federation[Blocks, Batch, Embeddings, Frozen], blocks: Blocks, r: int) -> Blocks:
        """From one vertical exchange to the next, then the horizontal tiers whose interval is over."""
        above, below = self.topology.above, self.topology.below
        steps = below[-1].interval if below else self.local_steps
        drawn = self.fraction
        batch = fed.draw_batch(self.batch_size, round=r) if drawn is None else fed.select(drawn, round=r)
        blocks = fed.broadcast(blocks, batch)
        embeddings = fed.embed(blocks, batch)
        frozen = fed.exchange(embeddings, batch)
        for done in range(steps, self.local_steps + 1, steps):
            local = LocalSteps(steps, rate(self.step_size, r), first=done - steps)
            blocks = fed.descend(blocks, batch, frozen, local)
            depth = next((d for d, tier in enumerate(below) if done % tier.interval == 0), 0)
            blocks = fed.average(blocks, batch, weights=self.weights, depth=depth)
            if done < self.local_steps:
                blocks = fed.broadcast(blocks, batch, depth=depth)
        for level in reversed(range(len(above))):  # innermost first: a server's average is one of its regions'
            if (r + 1) * self.local_steps % above[level].interval == 0:
                blocks = fed.average_groups(blocks, round=r, level=level)
        return blocks
