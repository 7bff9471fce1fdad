"""The theorems for a config: their bounds as functions of the step size, and what sets the config apart."""

import math
from collections.abc import Callable, Iterator
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
    setting = _Setting(config, algorithm, data)
    clients = min(len(np.unique(silo.owners)) for silo in data.silos)

    every = (*setting.unlike_all(), *setting.unlike_papers())

    def theorem(name: str, limit: StepLimit, bound: Callable[..., Bound], differs: Iterator[str], **of: int) -> Theorem:
        def at(eta: float) -> Bound:
            return bound(constants, step_size=eta, iterations=iterations, local_steps=steps, **of)

        return Theorem(name, limit, at, (*every, *differs))

    papers = (
        theorem(theorem_names.FEDBCD, fedbcd_limit(constants, local_steps=steps), fedbcd_bound,
                setting.unlike_fedbcd()),
        theorem(theorem_names.ICASSP, icassp_limit(constants, local_steps=steps), icassp_bound,
                setting.unlike_icassp(), clients=clients),
        theorem(theorem_names.TDCD, tdcd_limit(constants, local_steps=steps), tdcd_bound, setting.unlike_tdcd()),
        theorem(theorem_names.HSGD, hsgd_limit(constants, global_steps=over), hsgd_bound, setting.unlike_hsgd(),
                global_steps=over),
    )  # fmt: skip
    if theorem_names.ABCD not in algorithm.proved_by:
        return papers
    ours = Anticipated(algorithm, data, task, uses_all(algorithm, data))
    anticipation = ours.anticipation(constants)

    def abcd(eta: float) -> Bound:
        bound = partial(anticipation.bound, constants.gap, iterations=iterations, local_steps=steps)
        found = bound(step_size=eta)
        return found if math.isfinite(found.value) else bound(step_size=anticipation.best)

    differs = (*setting.unlike_all(), *ours.unlike_theorem())
    own = (anticipation.best, anticipation.curvatures)
    return (Theorem(theorem_names.ABCD, anticipation.limit, abcd, differs, *own), *papers)


@dataclass(frozen=True)
class _Setting:
    """What a config has that a theorem has not, in words."""

    config: Config
    algorithm: AnyAlgorithm
    data: FederatedData

    @property
    def _several_steps(self) -> bool:
        return self.algorithm.local_steps > 1

    @property
    def _whole(self) -> bool:
        return uses_all(self.algorithm, self.data)

    def unlike_all(self) -> Iterator[str]:
        """What no theorem here speaks of."""
        if self.config.codecs:
            yield "exchanges are compressed"
        if self.config.optimiser is not None:
            yield "steps are not plain"
        yield from self.algorithm.unlike_theory

    def unlike_papers(self) -> Iterator[str]:
        """What the papers' theorems do not speak of."""
        if self.config.model.l1 > 0:
            yield "the L1 term has no gradient"
        if self._several_steps and (self.algorithm.anticipated(len(self.data.silos)) or 1) != 1:
            yield "silos anticipate each other"
        if self._several_steps and self.algorithm.window > 1:
            yield "local steps also use what was exchanged in earlier rounds"

    def unlike_fedbcd(self) -> Iterator[str]:
        if any(silo.clients > 1 for silo in self.data.silos):
            yield "silos have several clients"
        yield from self._groups()
        yield from self._reused()

    def unlike_icassp(self) -> Iterator[str]:
        yield from self._groups()
        yield from self._below()
        yield from self._derivatives()
        if self._several_steps and not (self.algorithm.fresh_batches or self._whole):
            yield "a round reuses its batch, the theorem draws one per step"

    def unlike_tdcd(self) -> Iterator[str]:
        yield from self._groups()
        yield from self._below()
        yield from self._derivatives()
        yield from self._reused()

    def unlike_hsgd(self) -> Iterator[str]:
        if len(self.algorithm.topology.above) > 1:
            yield "there are several tiers of groups, P is the outermost interval"
        if len(self.data.silos) != 2:
            yield f"there are {len(self.data.silos)} silos, the theorem has two"
        yield from self._below()
        if theorem_names.HSGD not in self.algorithm.proved_by:  # whose devices keep them as well
            yield from self._derivatives()
        yield from self._reused()

    def _groups(self) -> Iterator[str]:
        if self.data.groups is not None:
            yield "there are groups"

    def _below(self) -> Iterator[str]:
        below = self.algorithm.topology.below
        if below and below[0].interval != self.algorithm.local_steps:
            yield "clients are averaged more often than embeddings move"

    def _derivatives(self) -> Iterator[str]:
        anew = self.algorithm.asks_each_step or self.algorithm.continues_derivatives
        if self.data.label_silo is not None and self._several_steps and not anew:
            yield "derivatives are kept for a round"

    def _reused(self) -> Iterator[str]:
        if self._several_steps and self.algorithm.fresh_batches and not self._whole:
            yield "every step draws a batch, the theorem reuses one"
