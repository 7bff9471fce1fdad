"""The theorems for a config: their bounds as functions of the step size, and what sets the config apart."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from crosshatch.data.federated import FederatedData
from crosshatch.runs.choosing.anticipated import Anticipated
from crosshatch.runs.choosing.auto import intervals, uses_all
from crosshatch.runs.config import Config
from crosshatch.runs.config_names import AnyAlgorithm
from crosshatch.task.task import Task
from crosshatch.theory import theorem_names
from crosshatch.theory.bounds import (
    Bound,
    StepLimit,
    fedbcd_bound,
    fedbcd_limit,
    hsgd_bound,
    hsgd_limit,
    icassp_bound,
    icassp_limit,
    tdcd_bound,
    tdcd_limit,
)
from crosshatch.theory.constants import Constants


@dataclass(frozen=True)
class Theorem:
    """One theorem: its step-size limit, its bound at a step size up to that, and why it does not cover this setting.

    `differs` is empty where it is. The bound is then a theorem's; otherwise it is that of the nearest setting it has.
    `best` is the step size of the least bound and `lipschitz` the L_k of its own, where it says so of them.
    """

    name: str
    limit: StepLimit
    bound: Callable[[float], Bound]
    differs: tuple[str, ...]
    best: float | None = None
    lipschitz: tuple[float, ...] = ()


def theorems(
    config: Config, algorithm: AnyAlgorithm, data: FederatedData, task: Task, constants: Constants
) -> tuple[Theorem, ...]:
    """FedBCD's, ICASSP's, TDCD's and HSGD's, for the iterations of the whole run; before them ours, for its method."""
    over, steps = intervals(algorithm)
    iterations = config.run.rounds * steps
    differs = _differences(config, algorithm, data)
    unlike_all = (*(differs[one] for one in ("codecs", "optimiser") if one in differs), *algorithm.unlike_theory)

    def theorem(name: str, limit: StepLimit, bound: Callable[..., Bound], about: Sequence[str], **of: int) -> Theorem:
        def at(eta: float) -> Bound:
            return bound(constants, step_size=eta, iterations=iterations, local_steps=steps, **of)

        return Theorem(
            name, limit, at, (*unlike_all, *(differs[one] for one in (*_OF_PAPERS, *about) if one in differs))
        )

    clients = min(len(np.unique(silo.owners)) for silo in data.silos)
    kept = () if theorem_names.HSGD in algorithm.proved_by else ("kept derivatives",)  # whose devices keep them as well
    papers = (
        theorem(theorem_names.FEDBCD, fedbcd_limit(constants, local_steps=steps), fedbcd_bound,
                ("clients", "groups", "fresh batches")),
        theorem(theorem_names.ICASSP, icassp_limit(constants, local_steps=steps), icassp_bound,
                ("groups", "averages", "kept derivatives", "reused batch"), clients=clients),
        theorem(theorem_names.TDCD, tdcd_limit(constants, local_steps=steps), tdcd_bound,
                ("groups", "averages", "kept derivatives", "fresh batches")),
        theorem(theorem_names.HSGD, hsgd_limit(constants, global_steps=over), hsgd_bound,
                ("tiers", "silos", "averages", *kept, "fresh batches"), global_steps=over),
    )  # fmt: skip
    if theorem_names.ABCD not in algorithm.proved_by:
        return papers
    ours = Anticipated(algorithm, data, task, uses_all(algorithm, data))
    anticipation = ours.anticipation(constants)

    def abcd(eta: float) -> Bound:
        bound = partial(anticipation.bound, constants.gap, iterations=iterations, local_steps=steps)
        found = bound(step_size=eta)
        return found if math.isfinite(found.value) else bound(step_size=anticipation.best)

    own = (anticipation.best, anticipation.curvatures)
    return (Theorem(theorem_names.ABCD, anticipation.limit, abcd, (*unlike_all, *ours.unlike_theorem()), *own), *papers)


_OF_PAPERS = ("l1", "anticipation", "window")
"""What the papers' theorems do not speak of."""


def _differences(config: Config, algorithm: AnyAlgorithm, data: FederatedData) -> dict[str, str]:
    """What a config has that a theorem may not have, in words."""
    several, all_samples, below = algorithm.local_steps > 1, uses_all(algorithm, data), algorithm.topology.below
    anew = algorithm.asks_each_step or algorithm.continues_derivatives
    found = {
        "codecs": (bool(config.codecs), "exchanges are compressed"),
        "optimiser": (config.optimiser is not None, "steps are not plain"),
        "l1": (config.model.l1 > 0, "the L1 term has no gradient"),
        "anticipation": (several and (algorithm.anticipated(len(data.silos)) or 1) != 1, "silos anticipate each other"),
        "window": (
            several and algorithm.window > 1, "local steps also use what was exchanged in earlier rounds"
        ),
        "clients": (any(silo.clients > 1 for silo in data.silos), "silos have several clients"),
        "groups": (data.groups is not None, "there are groups"),
        "tiers": (
            len(algorithm.topology.above) > 1, "there are several tiers of groups, P is the outermost interval"
        ),
        "silos": (len(data.silos) != 2, f"there are {len(data.silos)} silos, the theorem has two"),
        "averages": (
            bool(below) and below[0].interval != algorithm.local_steps,
            "clients are averaged more often than embeddings move",
        ),
        "kept derivatives": (
            data.label_silo is not None and several and not anew, "derivatives are kept for a round"
        ),
        "reused batch": (
            several and not (algorithm.fresh_batches or all_samples),
            "a round reuses its batch, the theorem draws one per step",
        ),
        "fresh batches": (
            several and algorithm.fresh_batches and not all_samples, "every step draws a batch, the theorem reuses one"
        ),
    }  # fmt: skip
    return {name: words for name, (applies, words) in found.items() if applies}
