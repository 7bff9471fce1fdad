"""Settings of the algorithms: what makes no sense is refused, and the tiers follow from Q."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from crosshatch.algorithms.central import Central
from crosshatch.algorithms.fedavg import FedAvg
from crosshatch.algorithms.fedbcd import FedBCD
from crosshatch.algorithms.fedsgd import FedSGD
from crosshatch.algorithms.hsgd import HSGD
from crosshatch.algorithms.jfl import JFL
from crosshatch.algorithms.mtcd import MTCD, STCD
from crosshatch.algorithms.tdcd import TDCD
from crosshatch.algorithms.tiered import Tiered
from crosshatch.errors import ConfigError

WITH_STEPS: tuple[Callable[..., Any], ...] = (FedBCD, TDCD, FedAvg, Central)
ALL: tuple[Callable[..., Any], ...] = (*WITH_STEPS, FedSGD)


@pytest.mark.parametrize("kind", WITH_STEPS)
@pytest.mark.parametrize("steps", [0, -3])
def test_q_is_at_least_one(kind: Callable[..., Any], steps: int) -> None:
    with pytest.raises(ConfigError, match=f"algorithm.local_steps = {steps}: Q must be at least 1"):
        kind(local_steps=steps)


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize("size", [0, -1])
def test_a_batch_has_a_sample(kind: Callable[..., Any], size: int) -> None:
    with pytest.raises(ConfigError, match=f"algorithm.batch_size = {size}: must be at least 1"):
        kind(batch_size=size)


@pytest.mark.parametrize("kind", [TDCD, FedAvg, Central])
def test_batches_are_reused_or_fresh(kind: Callable[..., Any]) -> None:
    with pytest.raises(ConfigError, match=r"algorithm.batches = 'both': must be 'reused'.* or 'fresh'"):
        kind(batches="both")


def test_other_words_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"algorithm.order = 'random': must be 'parallel' or 'sequential'"):
        FedBCD(order="random")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=r"algorithm.derivatives = 'never': must be 'each_step' or 'each_round'"):
        TDCD(derivatives="never")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=r"algorithm.derivatives = 'each_step': must be 'each_round' or 'continued'"):
        FedBCD(derivatives="each_step")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=r"algorithm.order = 'random': must be 'parallel' or 'sequential'"):
        TDCD(order="random")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=r"algorithm.weights = 'loss': must be 'equal' or 'samples' or 'at_work'"):
        TDCD(weights="loss")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=r"algorithm.weights = 'loss': must be 'equal' or 'samples' or 'at_work'"):
        FedAvg(weights="loss")  # type: ignore[arg-type]


@pytest.mark.parametrize("weight", [-0.1, float("nan")])
def test_the_pull_is_not_negative(weight: float) -> None:
    with pytest.raises(ConfigError, match=r"algorithm.proximal"):
        FedBCD(proximal=weight)


def test_the_pull_is_finite() -> None:
    with pytest.raises(ConfigError, match=r"algorithm.proximal"):
        FedBCD(proximal=float("inf"))


@pytest.mark.parametrize(
    ("algorithm", "tiers"),
    [
        (FedSGD(), "V(1)"),
        (FedBCD(local_steps=7), "V(7)"),
        (TDCD(local_steps=7), "V(7) H(7)"),
        (FedAvg(local_steps=7), "H(7)"),
    ],
)
def test_tiers(algorithm: Any, tiers: str) -> None:
    assert str(algorithm.topology) == tiers
    assert algorithm.local_steps == algorithm.topology.tiers[-1].interval


@pytest.mark.parametrize("kind", ALL)
def test_settings_are_values(kind: Callable[..., Any]) -> None:
    assert kind(batch_size=3) == kind(batch_size=3)
    assert hash(kind()) == hash(kind())
    assert kind(batch_size=3) != kind(batch_size=4)


@pytest.mark.parametrize("value", [2.5, 2.0, True, "2", None])
@pytest.mark.parametrize(
    ("kind", "key"),
    [
        *((kind, "local_steps") for kind in (*WITH_STEPS, HSGD, JFL, STCD, MTCD)),
        *((kind, "batch_size") for kind in (*ALL, Tiered)),
        (HSGD, "global_steps"),
        (MTCD, "tokens"),
        (MTCD, "hops_between_averages"),
    ],
)
def test_whole_numbers_are_whole(kind: Callable[..., Any], key: str, value: object) -> None:
    if (key, value) == ("batch_size", None):
        return
    with pytest.raises(ConfigError, match=f"^algorithm.{key} = {value!r}: must be a whole number$"):
        kind(**{key: value})
    assert getattr(kind(**{key: np.int64(10)}), key) == 10


@pytest.mark.parametrize("kind", [*ALL, HSGD, JFL, STCD, MTCD, Tiered])
@pytest.mark.parametrize("value", [True, "0.1", None])
def test_a_step_size_is_a_number_or_a_schedule(kind: Callable[..., Any], value: object) -> None:
    with pytest.raises(ConfigError, match=f"^algorithm.step_size = {value!r}"):
        kind(step_size=value)


@pytest.mark.parametrize("kind", [HSGD, JFL, Tiered])
@pytest.mark.parametrize("value", [True, "0.1"])
def test_a_fraction_is_a_number(kind: Callable[..., Any], value: object) -> None:
    with pytest.raises(ConfigError, match=f"^algorithm.fraction = {value!r}: must be a number"):
        kind(fraction=value)
