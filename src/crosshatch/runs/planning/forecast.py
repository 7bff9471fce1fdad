"""How many rounds, bytes and seconds the theory allows for: an upper bound, from what one round costs."""

from dataclasses import dataclass

from crosshatch.theory.bounds import Bound


@dataclass(frozen=True)
class RoundCost:
    """What one round costs, on average: of a simulated round, or in closed form from shapes."""

    bytes: float
    seconds: float
    local_steps: int


@dataclass(frozen=True)
class Forecast:
    """Rounds, bytes and seconds after which a theorem's bound is at `level`; training usually needs far fewer."""

    theorem: str
    level: float
    iterations: int
    rounds: int
    bytes: float
    seconds: float


def forecast(bound: Bound, cost: RoundCost, *, level: float) -> Forecast | None:
    """Where the bound reaches `level`; None where its floor is higher: lower the step size or draw larger batches.

    >>> from crosshatch.theory.bounds import StepLimit
    >>> bound = Bound("HSGD, Theorem 1", start=1.0, noise=0.1, drift=0.1, step_size=0.01, iterations=100,
    ...     limit=StepLimit(0.1, 0.1))
    >>> forecast(bound, RoundCost(bytes=1000, seconds=2.0, local_steps=10), level=0.7).rounds
    20
    """
    iterations = bound.iterations_to(level)
    if iterations is None:
        return None
    rounds = -(-iterations // cost.local_steps)
    return Forecast(bound.theorem, level, iterations, rounds, rounds * cost.bytes, rounds * cost.seconds)
