"""HSGD's adaptive strategies for P, Q and the step size, and its communication cost.

Yu et al., section VI: Propositions 1-3, formula (19).   F0: gap   rho, delta: as in `Constants`   T: iterations
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, final

from crosshatch.errors import ConfigError

Rule = Literal["paper", "derived"]


@final
@dataclass(frozen=True)
class Sizes:
    """How many numbers travel in formula (19): the sub-models, the selected devices per group and the embeddings.

    >>> communication_cost(Sizes(head=2, hospital=10, device=5, devices=3, from_hospital=6, from_devices=6),
    ...     global_steps=10, local_steps=5, groups=4, iterations=100)
    2720.0
    """

    head: int  # |theta_0|
    hospital: int  # |theta_1|
    device: int  # |theta_2|
    devices: int  # |A|, selected in each group
    from_hospital: int  # |Z_1|, embeddings of the batch sent to the devices
    from_devices: int  # |Z_2|, embeddings sent to the hospital


def communication_cost(sizes: Sizes, *, global_steps: int, local_steps: int, groups: int, iterations: int) -> float:
    """Formula (19), C(P, Q), in numbers over T iterations.

    It counts the hospital's model once per global round, the devices' models, the head and the embeddings once per
    local one: one way each, no frames, and no device model between edge and server.
    """
    every_round = sizes.devices * sizes.device + sizes.head + sizes.from_hospital + sizes.from_devices
    return (sizes.hospital / global_steps + every_round / local_steps) * groups * iterations


def equal_intervals(local_steps: int) -> tuple[int, int]:
    """Strategy 1 (Proposition 1): P = Q. Returns (P, Q)."""
    return local_steps, local_steps


def least_ratio(
    level: float, *, gap: float, rho: float, delta_squared: float, step_size: float, iterations: int, global_steps: int
) -> float | None:
    """The least P/Q that keeps the bound (17) at `level`, from (18); None where no ratio does.

    At most 1: strategy 1's P = Q keeps the level, the case Proposition 1 speaks of.
    """
    left = level - 4 * gap / (step_size * iterations) - 12 * global_steps * rho * step_size * delta_squared
    if left <= 0:
        return None
    return 4 * math.sqrt(6 * delta_squared) * global_steps * rho * step_size / math.sqrt(left)


def best_interval(
    *, gap: float, rho: float, delta_squared: float, step_size: float, iterations: int, rule: Rule = "paper"
) -> int:
    """Strategy 2 (Proposition 2): P = Q = `sqrt(F0 / (24 rho^2 eta^2 delta^2 T))`, rounded, from 1 to T.

    The paper's derivative (20) of bound times cost is zero where the square has eta^3 instead of eta^2: with rule
    "derived" the interval minimises that product, with "paper" it is the printed one. Without noise it is T.
    """
    power = {"paper": 2, "derived": 3}[rule]
    below = 24 * rho**2 * step_size**power * delta_squared * iterations
    if gap == 0 or below == 0:
        return 1 if gap == 0 else iterations
    return max(1, min(iterations, round(math.sqrt(gap / below))))


def best_step_size(
    gradient_squared: float, *, rho: float, delta_squared: float, global_steps: int, local_steps: int
) -> float:
    """Strategy 3 (Proposition 3): `min(eta_2, 1 / (8 P rho))`, for the current squared norm of the gradient.

    eta_2 is the positive root of the derivative `3 a eta^2 + 2 b eta - c` of (26), with a, b, c of (25).
    """
    if not (math.isfinite(gradient_squared) and gradient_squared > 0):
        raise ConfigError(
            f"squared gradient norm {gradient_squared!r}: strategy 3 needs a positive one, stop where it is 0"
        )
    limit = 1 / (8 * global_steps * rho)
    return min(positive_root(gradient_squared, rho, delta_squared, global_steps, local_steps), limit)


def positive_root(
    gradient_squared: float, rho: float, delta_squared: float, global_steps: int, local_steps: int
) -> float:
    """eta_2 of Proposition 3, written `c / (b + sqrt(b^2 + 3 a c))` against cancellation; infinite without noise."""
    a = 24 * local_steps**2 * global_steps * rho**2 * delta_squared
    b = 3 * global_steps**2 * rho * delta_squared
    c = global_steps / 4 * gradient_squared
    return c / (b + math.sqrt(b**2 + 3 * a * c)) if b > 0 else math.inf
