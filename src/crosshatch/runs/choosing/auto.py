"""Settings that are "auto": chosen from estimated constants before training by HSGD's adaptive strategies.

Strategy 1: where one of P and Q is given, the other equals it. Strategy 2: where neither is, both are Q*; at a step
size which the theorem behind Q* does not allow, trials decide instead (`measure.py`). Strategy 3: the step size, which
training then finds anew as it goes. Without groups P is Q: TDCD and FedBCD are the case of one. ABCD's step size is the
one of its own theorem; where that does not apply, trials decide too.
"""

import math
from dataclasses import replace

import torch

from crosshatch.data.federated import FederatedData, move
from crosshatch.errors import ConfigError
from crosshatch.runs.choosing.anticipated import Anticipated
from crosshatch.runs.choosing.trials import Tell
from crosshatch.runs.config import Config
from crosshatch.runs.config_names import AnyAlgorithm, algorithm_name, planned_names, settings_of
from crosshatch.schedules import Adaptive, Constant, rate
from crosshatch.simulator.adapt import without_dropout
from crosshatch.task.task import Task
from crosshatch.theory import theorem_names
from crosshatch.theory.constants import Constants
from crosshatch.theory.estimate import Sampling, estimate, gradient_squared
from crosshatch.theory.strategies import Rule, best_step_size

PRECISIONS = {"float32": torch.float32, "float64": torch.float64}
MOST_STEPS = 1000
"""No run needs more local steps between exchanges; a formula that asks for more has found hardly any noise."""


def choose(config: Config, data: FederatedData, task: Task, tell: Tell) -> Config:
    """The config with numbers in place of "auto"; the step size becomes an adaptive schedule with its constants.

    What theory leaves open is then to be measured.
    """
    if not config.auto:
        return config
    algorithm = config.algorithm
    require_planned(config)
    precision = PRECISIONS[config.run.precision]
    data, task = move(data, config.run.device, precision), task.to(config.run.device, precision)
    if theorem_names.ABCD in algorithm.proved_by:
        return _by_our_theorem(config, Anticipated(algorithm, data, task, uses_all(algorithm, data)), tell)
    constants, gradient = estimate_start(algorithm, data, task, seed=config.run.seed)
    return _choose(config, algorithm, constants, gradient, tell)


def estimate_start(algorithm: AnyAlgorithm, data: FederatedData, task: Task, *, seed: int) -> tuple[Constants, float]:
    """The constants of a federation, and the squared norm of the gradient at the start."""
    with without_dropout(task):
        constants = estimate(data, task, sampling(algorithm), seed=seed)
        return constants, gradient_squared(data, task, tuple(task.initial()))


def adopt(config: Config, stored: Config) -> Config:
    """The config with the choices a run that is resumed has made already."""
    if config.privacy == replace(stored.privacy, seconds=None):
        config = replace(config, privacy=stored.privacy)  # how long operations last was measured then
    keys = config.auto + config.measured
    if stored.algorithm.division_seed is not None:
        asked = settings_of(config.algorithm)
        keys += tuple(key for key in ("draw", "division_seed") if asked.get(key) is None)
    if not keys or type(config.algorithm) is not type(stored.algorithm):
        return config
    made = {key: value for key, value in settings_of(stored.algorithm).items() if key in keys}
    return replace(config, algorithm=replace(config.algorithm, **made), auto=(), measured=())


def require_planned(config: Config) -> None:
    """Refuse an algorithm and a model that no theorem is about."""
    algorithm = config.algorithm
    if config.model.fusion == "transfer":
        raise ConfigError(
            "model.fusion = 'transfer': the theorems are about losses of one sample each, and a class mean ties all "
            "samples together: give numbers, or try them out with algorithm.step_size = 'measure'"
        )
    if not algorithm.auto:
        raise ConfigError(
            f"algorithm.name = '{algorithm_name(algorithm)}': no convergence theorem here covers it: choose one of "
            f"{', '.join(planned_names())} to plan"
        )


def sampling(algorithm: AnyAlgorithm) -> Sampling:
    """How a round of the algorithm draws its samples."""
    return Sampling(algorithm.batch_size, algorithm.fraction)


def uses_all(algorithm: AnyAlgorithm, data: FederatedData) -> bool:
    """Whether every round uses all samples, so that fresh and reused batches are the same."""
    drawn = sampling(algorithm)
    return drawn.batch_size in (None, len(data.y_train)) and drawn.fraction in (None, 1.0)


def first_step_size(algorithm: AnyAlgorithm) -> float:
    """That of the first round, of an algorithm that can be planned."""
    assert not isinstance(algorithm.step_size, str)
    return rate(algorithm.step_size, 0)


def intervals(algorithm: AnyAlgorithm) -> tuple[int, int]:
    """P and Q: local steps between averages of the outermost tier, and between exchanges of embeddings.

    >>> from crosshatch import TDCD, Tiered
    >>> intervals(Tiered(tiers="H(40) H(20) V(10) H(5)")), intervals(TDCD(local_steps=5))
    ((40, 10), (5, 5))
    """
    return algorithm.topology.tiers[0].interval, algorithm.local_steps


def strategy_2(constants: Constants, *, step_size: float, rounds: int, rule: Rule = "paper") -> int:
    """P = Q = Q* where a run is so many *rounds* of Q steps each, so that T = rounds x Q in the formula of Q*.

    >>> strategy_2(Constants(24.0, 1.0, (1.0,), 1.0, (0.5,), (0.5,)), step_size=0.1, rounds=25)
    2
    """
    power = {"paper": 2, "derived": 3}[rule]
    below = 24 * constants.rho**2 * step_size**power * constants.delta_squared * rounds
    steps = math.cbrt(constants.gap / below) if below > 0 else math.inf
    if steps > MOST_STEPS:
        raise ConfigError(
            f"algorithm.local_steps = 'auto': the estimated noise, delta^2 = {constants.delta_squared:.3g}, is so "
            f"small that Q* is above {MOST_STEPS}: give a number"
        )
    return max(1, round(steps))


def strategy_3(constants: Constants, gradient: float, *, global_steps: int, local_steps: int) -> float:
    """The step size for a squared norm of the gradient, six digits of it."""
    best = best_step_size(
        gradient,
        rho=constants.rho,
        delta_squared=constants.delta_squared,
        global_steps=global_steps,
        local_steps=local_steps,
    )
    return _round(best)


def both(constants: Constants, gradient: float, *, rounds: int, rule: Rule = "paper") -> tuple[int, float]:
    """P = Q and the step size where neither is given: Q* for the step size of P = Q = 1, then the step size for Q*.

    One turn and no more: a longer interval asks for a smaller step and that for a longer interval, and where the two
    agree they hardly exchange or move at all.
    """
    first = strategy_3(constants, gradient, global_steps=1, local_steps=1)
    steps = strategy_2(constants, step_size=first, rounds=rounds, rule=rule)
    return steps, strategy_3(constants, gradient, global_steps=steps, local_steps=steps)


def covers(constants: Constants, *, step_size: float, steps: int) -> bool:
    """Whether HSGD's Theorem 1 allows the step size at P = Q = steps: at most 1 / (8 P rho).

    >>> constants = Constants(24.0, 1.0, (1.0,), 1.0, (0.5,), (0.5,))
    >>> covers(constants, step_size=0.05, steps=2), covers(constants, step_size=0.1, steps=2)
    (True, False)
    """
    return step_size <= 1 / (8 * steps * constants.rho)


def _by_our_theorem(config: Config, anticipated: Anticipated, tell: Tell) -> Config:
    compressed = ("exchanges are compressed",) if config.codecs else ()
    differs = (*compressed, *anticipated.unlike_theorem())
    if differs:
        tell(f'algorithm.step_size = "auto": its theorem does not cover this setting ({"; ".join(differs)})')
        return replace(config, auto=(), measured=("step_size",))
    step_size = Constant(_round(anticipated.anticipation().best))
    return replace(config, algorithm=config.algorithm.with_step_size(step_size), auto=())


def _choose(config: Config, algorithm: AnyAlgorithm, constants: Constants, gradient: float, tell: Tell) -> Config:
    auto, rounds = config.auto, config.run.rounds
    if "global_steps" in algorithm.auto and ("global_steps" in auto) != ("local_steps" in auto):
        over, under = intervals(algorithm)
        algorithm = algorithm.with_interval(under if "global_steps" in auto else over)
    elif "local_steps" in auto:
        if "step_size" in auto:
            steps, _ = both(constants, gradient, rounds=rounds)
        else:
            step_size = first_step_size(algorithm)
            steps = strategy_2(constants, step_size=step_size, rounds=rounds)
            if not covers(constants, step_size=step_size, steps=steps):
                tell(f'algorithm.local_steps = "auto": no theorem allows the step size {step_size:g}')
                return replace(config, auto=(), measured=auto)
        algorithm = algorithm.with_interval(steps)
    if "step_size" not in auto:
        return replace(config, algorithm=algorithm, auto=())
    over, under = intervals(algorithm)
    ratio = over // under
    schedule = Adaptive(
        strategy_3(constants, gradient, global_steps=over, local_steps=under),
        rho=_round(constants.rho),
        delta_squared=_round(constants.delta_squared),
        every=ratio * -(-config.evaluate.every // ratio),  # at evaluations, moved on to the end of a global round
    )
    return replace(config, algorithm=algorithm.with_step_size(schedule), auto=())


def _round(value: float) -> float:
    """Six digits: readable in the config that a run writes, which then holds all that was used."""
    return float(f"{value:.6g}")
