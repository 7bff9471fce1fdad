"""The four theorems for a config: their bounds as functions of the step size, and what sets the config apart."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import final

import numpy as np

from crosshatch.data.federated import FederatedData
from crosshatch.runs.choosing.auto import intervals, sampling
from crosshatch.runs.config import Config
from crosshatch.runs.config_names import AnyAlgorithm
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


@final
@dataclass(frozen=True)
class Theorem:
    """One theorem: its step-size limit, its bound at a step size up to that, and why it does not cover this setting.

    `differs` is empty where it is. The bound is then a theorem's; otherwise it is that of the nearest setting it has.
    """

    name: str
    limit: StepLimit
    bound: Callable[[float], Bound]
    differs: tuple[str, ...]


def theorems(config: Config, algorithm: AnyAlgorithm, data: FederatedData, constants: Constants) -> tuple[Theorem, ...]:
    """FedBCD's, ICASSP's, TDCD's and HSGD's, for the iterations of the whole run."""
    over, steps = intervals(algorithm)
    iterations = config.run.rounds * steps
    setting = _Setting(config, algorithm, data)
    clients = min(len(np.unique(silo.owners)) for silo in data.silos)

    def fedbcd(eta: float) -> Bound:
        return fedbcd_bound(constants, step_size=eta, iterations=iterations, local_steps=steps)

    def icassp(eta: float) -> Bound:
        return icassp_bound(constants, step_size=eta, iterations=iterations, local_steps=steps, clients=clients)

    def tdcd(eta: float) -> Bound:
        return tdcd_bound(constants, step_size=eta, iterations=iterations, local_steps=steps)

    def hsgd(eta: float) -> Bound:
        return hsgd_bound(constants, step_size=eta, iterations=iterations, global_steps=over, local_steps=steps)

    every = tuple(setting.unlike_all())
    return (
        Theorem(theorem_names.FEDBCD, fedbcd_limit(constants, local_steps=steps), fedbcd,
                (*every, *setting.unlike_fedbcd())),
        Theorem(theorem_names.ICASSP, icassp_limit(constants, local_steps=steps), icassp,
                (*every, *setting.unlike_icassp())),
        Theorem(theorem_names.TDCD, tdcd_limit(constants, local_steps=steps), tdcd,
                (*every, *setting.unlike_tdcd())),
        Theorem(theorem_names.HSGD, hsgd_limit(constants, global_steps=over), hsgd,
                (*every, *setting.unlike_hsgd())),
    )  # fmt: skip


@final
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
        """Every round uses all samples, so that fresh and reused batches are the same."""
        drawn = sampling(self.algorithm)
        return drawn.batch_size in (None, len(self.data.y_train)) and drawn.fraction in (None, 1.0)

    def unlike_all(self) -> Iterator[str]:
        """What no theorem here speaks of."""
        if self.config.codecs:
            yield "exchanges are compressed"
        if self.config.model.l1 > 0:
            yield "the L1 term has no gradient"
        yield from self.algorithm.unlike_theory

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
