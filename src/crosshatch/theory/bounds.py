"""The four convergence theorems: upper bounds on the averaged squared gradient norm, and their step-size limits.

FedBCD: Liu et al., arXiv:1912.11187, Theorem 2. ICASSP: Das and Patterson, arXiv:2102.03620, Theorem 4.1. TDCD: Das et
al., arXiv:2108.08930, Theorem 1. HSGD: Yu et al., Theorem 1. eta: step_size   Q: local_steps   P: global_steps
T: iterations (local steps in all)   K: clients   N: constants.silos

FedBCD and ICASSP average over all T iterates, those inside a round included; TDCD over the starts of rounds; HSGD over
the starts of global rounds, every P-th iterate.
"""

import math
from dataclasses import dataclass

from crosshatch.errors import ConfigError
from crosshatch.theory import theorem_names
from crosshatch.theory.constants import Constants


@dataclass(frozen=True)
class StepLimit:
    """The largest step size of a theorem: as `stated`, and the (smaller or equal) one a derivation `supports`."""

    stated: float
    supports: float


@dataclass(frozen=True)
class Bound:
    """A theorem's right-hand side, term by term.

    `start` falls as 1/T; `noise` and `drift` (what Q local steps on frozen values add) stay however long one trains.
    """

    theorem: str
    start: float
    noise: float
    drift: float
    step_size: float
    iterations: int
    limit: StepLimit

    @property
    def value(self) -> float:
        return self.start + self.noise + self.drift

    @property
    def floor(self) -> float:
        """What remains of it after infinitely many iterations."""
        return self.noise + self.drift

    @property
    def dominant(self) -> str:
        terms = {"start": self.start, "noise": self.noise, "drift": self.drift}
        return max(terms, key=lambda name: terms[name])

    def iterations_to(self, level: float) -> int | None:
        """The least T for which the bound is at most `level`; None where its floor is not below that."""
        if level <= self.floor:
            return None
        return max(1, math.ceil(self.start * self.iterations / (level - self.floor) * (1 - 1e-12)))


def fedbcd_limit(constants: Constants, *, local_steps: int) -> StepLimit:
    """`min(sqrt(2) / (2 Q sqrt(sum_j L_j^2 + 3 L_k^2)), 1 / L)`; the free index k is read as the worst block.

    The proof needs `1 - L eta - 2 eta^2 Q^2 (sum_j L_j^2 + 3 L_k^2) >= 0`, which the stated limit does not imply: at
    its first term the last summand alone is 1. `supports` is the root of the proof's condition.
    """
    worst = _sum_of_squares(constants.block_lipschitz) + 3 * max(constants.block_lipschitz) ** 2
    stated = 1 / constants.lipschitz
    if worst > 0:
        stated = min(math.sqrt(0.5) / (local_steps * math.sqrt(worst)), stated)
    return StepLimit(stated, min(stated, _root(constants.lipschitz, 2 * local_steps**2 * worst)))


def fedbcd_bound(constants: Constants, *, step_size: float, iterations: int, local_steps: int) -> Bound:
    """Equations (13)-(14). `batch_noise` is sigma^2 / S: the noise of a mini-batch as it is drawn, of the worst block.

    Lemma 2 compares mini-batch derivatives at different weights, so L_k must hold for every mini-batch's derivative,
    not for the full loss alone, as assumption A1 has it.
    """
    limit = admit(theorem_names.FEDBCD, fedbcd_limit(constants, local_steps=local_steps), step_size)
    noise = max(constants.batch_noise)
    parties = constants.silos
    drift = 2 * step_size**2 * (parties + 3) * local_steps**2 * _sum_of_squares(constants.block_lipschitz) * noise
    start = 2 * constants.gap / (step_size * iterations)
    return Bound(theorem_names.FEDBCD, start, 2 * parties * noise, drift, step_size, iterations, limit)


def icassp_limit(constants: Constants, *, local_steps: int) -> StepLimit:
    """The root of equation (9), `1 - eta L - eta^2 L_max^2 Q^2 = 0`.

    The staleness of N blocks enters through sum_j L_j^2, not through L_max^2 alone. With many strongly correlated
    silos and a large Q the method diverges below the stated limit, without any noise. `supports` is the root with the
    sum in place of the maximum, which is enough for a descent in every round when there is no noise.
    """
    largest = max(constants.block_lipschitz)
    total = _sum_of_squares(constants.block_lipschitz)
    stated, supports = (_root(constants.lipschitz, local_steps**2 * square) for square in (largest**2, total))
    return StepLimit(stated, supports)


def icassp_bound(constants: Constants, *, step_size: float, iterations: int, local_steps: int, clients: int) -> Bound:
    """Equation (10), for fresh mini-batches at every step; `clients` is K (the smallest where silos differ)."""
    limit = admit(theorem_names.ICASSP, icassp_limit(constants, local_steps=local_steps), step_size)
    noise, silos = max(constants.client_noise), constants.silos
    start = 2 * constants.gap / (step_size * iterations)
    linear = step_size * constants.lipschitz * silos * noise / clients
    drift = (max(constants.block_lipschitz) * step_size * local_steps * silos) ** 2 * noise
    return Bound(theorem_names.ICASSP, start, linear, drift, step_size, iterations, limit)


def tdcd_limit(constants: Constants, *, local_steps: int) -> StepLimit:
    """Equation (14), `1 / (8 Q max(L, L_max))`; L_max of equation (10) is read as that over clients and silos."""
    limit = 1 / (8 * local_steps * max(constants.lipschitz, constants.local_lipschitz))
    return StepLimit(limit, limit)


def tdcd_bound(constants: Constants, *, step_size: float, iterations: int, local_steps: int) -> Bound:
    """Equation (15), for a mini-batch reused Q times; T = Q R. The expected last loss is read as the lower bound."""
    limit = admit(theorem_names.TDCD, tdcd_limit(constants, local_steps=local_steps), step_size)
    noise = sum(constants.client_noise)
    reach = step_size * local_steps
    start = 4 * constants.gap / (step_size * iterations)
    square = constants.local_lipschitz**2
    drift = 4 * (4 * reach**2 * square + 8 * reach**3 * constants.lipschitz * square) * noise
    return Bound(
        theorem_names.TDCD, start, 4 * reach * constants.lipschitz * noise, drift, step_size, iterations, limit
    )


def hsgd_limit(constants: Constants, *, global_steps: int) -> StepLimit:
    """`1 / (8 P rho)`, with rho at least the constant of every stochastic partial derivative (Assumption 1)."""
    limit = 1 / (8 * global_steps * constants.rho)
    return StepLimit(limit, limit)


def hsgd_bound(
    constants: Constants, *, step_size: float, iterations: int, global_steps: int, local_steps: int
) -> Bound:
    """Equation (17), for iid groups; T = R P. The expected last loss is read as the lower bound.

    For P > Q the proof follows the drift over Q steps only. With P in Q's place the drift term is at most another
    noise term below the limit, as `96 P^2 rho^2 eta^2 <= 12 P rho eta` there.
    """
    limit = admit(theorem_names.HSGD, hsgd_limit(constants, global_steps=global_steps), step_size)
    reach = step_size * constants.rho
    start = 4 * constants.gap / (step_size * iterations)
    noise = 12 * global_steps * reach * constants.delta_squared
    drift = 96 * (local_steps * reach) ** 2 * constants.delta_squared
    return Bound(theorem_names.HSGD, start, noise, drift, step_size, iterations, limit)


def admit(theorem: str, limit: StepLimit, step_size: float) -> StepLimit:
    """The limit; a step size above it is refused."""
    if not 0 < step_size <= limit.stated:
        raise ConfigError(
            f"algorithm.step_size = {step_size:g}: outside (0, {limit.stated:g}], the limit of {theorem}: "
            "lower it or the local steps for a bound"
        )
    return limit


def _root(linear: float, square: float) -> float:
    """The positive root of `1 - linear x - square x^2`, without cancellation."""
    return 2 / (linear + math.sqrt(linear**2 + 4 * square))


def _sum_of_squares(values: tuple[float, ...]) -> float:
    return sum(value**2 for value in values)
