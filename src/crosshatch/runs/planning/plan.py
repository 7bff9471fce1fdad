"""What the theory says about a config before it is trained: constants, bounds, strategies, and a forecast of the cost.

Bounds are upper bounds, usually by orders of magnitude: a forecast from them says when to expect the end at the latest.
"""

import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crosshatch.errors import ConfigError
from crosshatch.exchanges import on_federation
from crosshatch.runs.choosing.auto import (
    both,
    covers,
    estimate_start,
    first_step_size,
    intervals,
    require_planned,
    strategy_2,
    strategy_3,
)
from crosshatch.runs.config import Config
from crosshatch.runs.config_names import AnyAlgorithm
from crosshatch.runs.planning.theorems import Theorem, theorems
from crosshatch.runs.prepare import prepare, try_rounds
from crosshatch.schedules import Constant
from crosshatch.theory import theorem_names
from crosshatch.theory.bounds import Bound
from crosshatch.theory.constants import Constants
from crosshatch.theory.strategies import Rule, best_interval

SHARE = 0.1
"""The level of a forecast where none is given: this share of the squared gradient norm at the start."""
_CLOSE = 1 + 1e-4  # a step size chosen at the limit and rounded is not above it
_HALVINGS = 60


@dataclass(frozen=True)
class RoundCost:
    """What one round costs, on average: of a simulated round, or in closed form from shapes."""

    bytes: float
    seconds: float
    local_steps: int


@dataclass(frozen=True)
class Judgement:
    """A theorem's bound at the config's step size or, where that is `above` the limit, at the limit.

    ABCD's theorem has no bound at its limit: there the bound is that of its best step size.
    """

    theorem: Theorem
    bound: Bound
    above: bool

    @property
    def applies(self) -> bool:
        return not self.theorem.differs


@dataclass(frozen=True)
class Advice:
    """What one of the adaptive strategies would set; `says` is what it rests on."""

    strategy: str
    global_steps: int
    local_steps: int
    step_size: float
    says: str


@dataclass(frozen=True)
class Outlook:
    """After how much a theorem's bound, at a step size, is at the level that is asked for; training needs far fewer.

    None where no step size brings it there.
    """

    theorem: str
    step_size: float
    rounds: int | None = None
    bytes: float | None = None
    sim_seconds: float | None = None


@dataclass(frozen=True)
class Plan:
    """Everything `crosshatch plan` says."""

    config: Config
    algorithm: AnyAlgorithm
    silos: tuple[str, ...]
    global_steps: int
    local_steps: int
    step_size: float
    constants: Constants
    gradient_squared: float
    judgements: tuple[Judgement, ...]
    advice: tuple[Advice, ...]
    cost: RoundCost
    level: float
    outlooks: tuple[Outlook, ...]
    warnings: tuple[str, ...]
    leakage: Mapping[str, Any] | None = None  # of labels that one silo holds, as in summary.json

    @property
    def iterations(self) -> int:
        """T: local steps of the whole run."""
        return self.config.run.rounds * self.local_steps


def make_plan(config: Config, *, folder: Path | None = None, level: float | None = None) -> Plan:
    """Estimate the constants of a config and evaluate the theory; `level` is a squared gradient norm to reach.

    >>> import tempfile
    >>> from crosshatch import read_config
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "wine.toml")
    ...     written = path.write_text('data = {name = "wine"}')
    ...     config = read_config(path, ["algorithm.name=fedbcd", "run.rounds=20", "run.threads=1"])
    >>> [judgement.bound.theorem for judgement in make_plan(config).judgements if judgement.applies][0]
    'FedBCD, Theorem 2'
    """
    if level is not None and not (math.isfinite(level) and level > 0):
        raise ConfigError(f"--target-gradient {level:g}: a squared gradient norm to reach is a number above 0")
    require_planned(config)  # before any data is read
    prepared = prepare(config, folder=folder)
    config, simulator = prepared.config, prepared.simulator
    algorithm = on_federation(config.algorithm, simulator.data)
    constants, gradient = estimate_start(algorithm, simulator.data, simulator.task, seed=config.run.seed)
    level = SHARE * gradient if level is None else level
    step_size = first_step_size(algorithm)
    found = theorems(config, algorithm, simulator.data, simulator.task, constants)
    judgements = tuple(
        Judgement(one, one.bound(min(step_size, one.limit.stated)), step_size > one.limit.stated * _CLOSE)
        for one in found
    )
    over, under = intervals(algorithm)
    rounds = over // under
    diverged = try_rounds(simulator, rounds)
    cost = RoundCost(simulator.meter.bytes / rounds, simulator.seconds / rounds, simulator.algorithm.local_steps)
    return Plan(
        config=config,
        algorithm=algorithm,
        silos=tuple(silo.name for silo in simulator.data.silos),
        global_steps=over,
        local_steps=under,
        step_size=step_size,
        constants=constants,
        gradient_squared=gradient,
        judgements=judgements,
        advice=_advise(config, algorithm, constants, gradient, found),
        cost=cost,
        level=level,
        outlooks=tuple(_look_ahead(judgement, cost, step_size, level) for judgement in judgements),
        warnings=(*_warn(judgements, config, step_size), *diverged, *prepared.client_notes),
        leakage=None if prepared.leakage is None else prepared.leakage.table(),
    )


def _warn(judgements: tuple[Judgement, ...], config: Config, step_size: float) -> list[str]:
    """About theorems that are about this setting: others promise nothing here anyway."""
    warnings = []
    concerned = [judgement for judgement in judgements if judgement.applies]
    above = [f"{one.theorem.limit.stated:.4g} ({one.theorem.name})" for one in concerned if one.above]
    if above:
        warnings.append(
            f"algorithm.step_size = {step_size:.4g} is above the largest for which the theory promises convergence: "
            f"{', '.join(above)}. These limits are worst cases, and larger steps usually train well: try it with "
            "`crosshatch train`, and lower algorithm.step_size if the loss rises"
        )
    for judgement in concerned:
        name, limit = judgement.theorem.name, judgement.theorem.limit
        if not judgement.above and step_size > limit.supports * _CLOSE:
            warnings.append(
                f"algorithm.step_size = {step_size:.4g} is within the stated limit of {name}, {limit.stated:.4g}, but "
                f"above {limit.supports:.4g}, up to which its proof can be followed"
            )
    if not concerned:
        warnings.append("no theorem covers this setting: the bounds are those of the nearest settings")
    if config.model.l1 > 0 and concerned:  # ABCD's alone
        warnings.append("with model.l1 the bound is on the squared norm of a proximal step over the step size")
    if not isinstance(config.algorithm.step_size, float | int | Constant):
        warnings.append("the theorems have one step size for all rounds: the bounds take that of the first")
    return warnings


def _advise(
    config: Config, algorithm: AnyAlgorithm, constants: Constants, gradient: float, found: tuple[Theorem, ...]
) -> tuple[Advice, ...]:
    over, under = intervals(algorithm)
    for theorem in found:
        if theorem.name == theorem_names.ABCD:  # HSGD's strategies know nothing of anticipation
            says = "no promise: from the nearest setting" if theorem.differs else "the objective does not rise, any Q"
            assert theorem.best is not None
            return (Advice("ABCD", over, under, theorem.best, says),)
    eta, rounds = first_step_size(algorithm), config.run.rounds
    iterations = rounds * under
    lines = [Advice("1", under, under, eta, "P = Q, the config's Q")]
    readings: tuple[tuple[Rule, str], ...] = (
        ("paper", "eta^2 as the paper prints it (the default)"),
        ("derived", "eta^3 as its derivation gives it"),
    )
    for rule, reading in readings:
        steps = best_interval(
            gap=constants.gap, rho=constants.rho, delta_squared=constants.delta_squared, step_size=eta,
            iterations=iterations, rule=rule,
        )  # fmt: skip
        lines.append(Advice(f"2 {rule}", steps, steps, eta, f"Q* for T = {iterations}, {reading}"))
    chosen = strategy_3(constants, gradient, global_steps=over, local_steps=under)
    lines.append(Advice("3", over, under, chosen, "for the config's P and Q and the gradient at the start"))
    with suppress(ConfigError):  # "auto" would be refused: without noise
        steps = strategy_2(constants, step_size=eta, rounds=rounds)
        allowed = covers(constants, step_size=eta, steps=steps)
        use = 'as "auto" sets it' if allowed else '"auto" goes by trials: the step size is above the limit'
        lines.append(Advice("auto P, Q", steps, steps, eta, f"Q* for {rounds} rounds of Q* steps; {use}"))
    with suppress(ConfigError):
        steps, chosen = both(constants, gradient, rounds=rounds)
        says = f'for {rounds} rounds, with step_size = "auto" as well'
        lines.append(Advice("auto all", steps, steps, chosen, says))
    return tuple(lines)


def _look_ahead(judgement: Judgement, cost: RoundCost, step_size: float, level: float) -> Outlook:
    """At the config's step size where that does; otherwise at the quickest of the limit, its half, its quarter, ..."""
    bound = judgement.theorem.bound
    candidates = [] if judgement.above else [judgement.bound]
    if not any(candidate.iterations_to(level) for candidate in candidates):
        limit = judgement.theorem.limit.stated
        candidates = [bound(limit * 0.5**k) for k in range(_HALVINGS)]
    reached = [(needed, candidate) for candidate in candidates if (needed := candidate.iterations_to(level))]
    if not reached:
        return Outlook(judgement.theorem.name, min(step_size, judgement.theorem.limit.stated))
    needed, best = min(reached, key=lambda pair: pair[0])
    rounds = -(-needed // cost.local_steps)
    return Outlook(judgement.theorem.name, best.step_size, rounds, rounds * cost.bytes, rounds * cost.seconds)
