"""FedBCD: several local steps per party on frozen outputs of the others, in parallel or in turn, optionally proximal.

Liu et al., arXiv:1912.11187, Algorithms 2 and 3, equation (15).
theta_k: block   H_-k: frozen   Q: local_steps   eta: step_size   S: batch   mu: proximal
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from crosshatch.errors import ConfigError
from crosshatch.exchanges import Batch, Blocks, DrawsBatches, Embeddings, Federation, Frozen, LocalSteps
from crosshatch.schedules import Schedule, rate
from crosshatch.theory import theorem_names


@dataclass(frozen=True)
class FedBCD(DrawsBatches):
    """Federated block coordinate descent: `V(Q)`, one client per silo.

    `derivatives` matters where one silo holds the labels: with "each_round" the others take all their Q steps with the
    derivative it computed at the round's start; with "continued" they follow that derivative as their own scores move,
    which is the mathematics of shared labels without a further message.

    >>> str(FedBCD(local_steps=5).topology)
    'V(5)'
    """

    local_steps: int = 5
    step_size: Schedule | float = 0.1
    batch_size: int | None = None
    order: Literal["parallel", "sequential"] = "parallel"
    proximal: float = 0.0
    derivatives: Literal["each_round", "continued"] = "each_round"

    shape = "V(Q)"
    encrypts = True
    auto = ("local_steps", "step_size")
    proved_by = (theorem_names.FEDBCD,)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.proximal < float("inf"):
            raise ConfigError(f"algorithm.proximal = {self.proximal}: mu must be a finite number of at least 0")

    @property
    def unlike_theory(self) -> tuple[str, ...]:
        """Theorem 2 is about Algorithm 2 without a proximal term."""
        return (*super().unlike_theory, *(("steps are pulled back",) if self.proximal > 0 else ()))

    def run_round(self, fed: Federation[Blocks, Batch, Embeddings, Frozen], blocks: Blocks, r: int) -> Blocks:
        """One outer iteration of Algorithm 2, or one iteration of Algorithm 3."""
        batch = fed.draw_batch(self.batch_size, round=r)  # "Randomly sample a mini-batch S"
        now, frozen = fed.embed(blocks, batch), None
        eta = rate(self.step_size, r)
        local = LocalSteps(self.local_steps, eta, proximal=self.proximal, continued=self.derivatives == "continued")
        for silo in fed.silos if self.order == "sequential" else (None,):  # all together, or party after party
            if silo:
                now = fed.embed(blocks, batch, only=silo - 1, known=now)  # whose turn it was
            # what this silo, or the label's holder, has not seen of the others yet
            frozen = fed.exchange(now, batch, known=frozen, to=silo)
            blocks = fed.descend(blocks, batch, frozen, local, only=silo)
        return blocks
