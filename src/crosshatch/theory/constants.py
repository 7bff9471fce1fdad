"""The constants the convergence theorems speak of, for one federation, task and way of drawing samples."""

import math
from dataclasses import dataclass

from crosshatch.errors import ConfigError


@dataclass(frozen=True)
class Constants:
    """Known or estimated; tuples have one entry per silo, in the silos' order.

    `gap`: F0, the loss at the start minus a lower bound of the loss.
    `lipschitz`: L (HSGD: rho), the Lipschitz constant of the gradient.
    `block_lipschitz`: L_k, that of a block's partial derivative as a function of *all* weights.
    `local_lipschitz`: the largest such constant of any client's own stochastic partial derivative (L_max of TDCD).
    `batch_noise`: sigma^2 / S of FedBCD, mean squared distance of a block's mini-batch derivative from the full one.
    `client_noise`: sigma_j^2 of TDCD (delta^2 of HSGD is the largest), the same for one client's share of a batch.

    >>> Constants(2.0, 1.5, (1.0, 1.2), 1.4, (0.1, 0.2), (0.3, 0.4)).silos
    2
    """

    gap: float
    lipschitz: float
    block_lipschitz: tuple[float, ...]
    local_lipschitz: float
    batch_noise: tuple[float, ...]
    client_noise: tuple[float, ...]

    def __post_init__(self) -> None:
        assert len(self.block_lipschitz) == len(self.batch_noise) == len(self.client_noise) > 0
        _check("theory.gap", (self.gap,), "the lower bound of the loss is above the loss at the start: lower it")
        _check("theory.noise", self.batch_noise + self.client_noise, "a mean square is at least 0")
        smooth = (self.lipschitz, self.local_lipschitz, *self.block_lipschitz)
        _check("theory.lipschitz", smooth, "give Lipschitz constants of the gradient that are at least 0")
        if self.lipschitz == 0:
            raise ConfigError("theory.lipschitz = 0: the loss is flat at the start, start from other weights")

    @property
    def silos(self) -> int:
        """Number of blocks (K of FedBCD, N of TDCD)."""
        return len(self.block_lipschitz)

    @property
    def rho(self) -> float:
        """HSGD's rho: it bounds the full gradient and every stochastic partial derivative (Assumption 1)."""
        return max(self.lipschitz, self.local_lipschitz)

    @property
    def delta_squared(self) -> float:
        """HSGD's delta^2: it bounds the noise of the hospital's and of any device's partial derivative."""
        return max(self.client_noise)


def _check(place: str, values: tuple[float, ...], remedy: str) -> None:
    for value in values:
        if not (math.isfinite(value) and value >= 0):
            raise ConfigError(f"{place} = {value!r}: must be finite and at least 0 ({remedy})")
