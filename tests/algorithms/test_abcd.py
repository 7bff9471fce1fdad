"""ABCD's settings."""

from __future__ import annotations

import os
from typing import Any

import pytest

from crosshatch.algorithms.abcd import ABCD
from crosshatch.data.build import federate, load_dataset
from crosshatch.data.data_settings import FederationSettings
from crosshatch.errors import ConfigError
from crosshatch.simulator.simulator import Simulator
from crosshatch.task.build_task import ModelSettings, build_task


@pytest.mark.parametrize(
    ("anticipation", "silos", "factor"),
    [
        (1, 4, 1.0),
        (2.5, 4, 2.5),
        ("silos", 4, 4.0),
        ("0.5 silos", 4, 2.0),
        ("0.5 silos", 1, 1.0),
        (" 2 silos ", 3, 6.0),
    ],
)
def test_anticipation_for_so_many_silos(anticipation: float | str, silos: int, factor: float) -> None:
    assert ABCD(anticipation=anticipation).anticipated(silos) == factor


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"anticipation": 0.5}, r"algorithm.anticipation = 0.5: s must be a number of at least 1, 'silos', or"),
        ({"anticipation": "half"}, r"algorithm.anticipation = 'half': s must be"),
        ({"anticipation": "-1 silos"}, r"algorithm.anticipation = '-1 silos': s must be"),
        ({"anticipation": "nan silos"}, r"algorithm.anticipation = 'nan silos': s must be"),
        ({"anticipation": float("inf")}, r"algorithm.anticipation = inf: s must be"),
        ({"anticipation": True}, r"algorithm.anticipation = True: s must be"),
        ({"window": 0}, r"algorithm.window = 0: must be at least 1 .W = 1 is the round's own batch"),
        ({"window": 1.5}, r"algorithm.window"),
        ({"local_steps": 0}, r"algorithm.local_steps = 0"),
        ({"weights": "fair"}, r"algorithm.weights = 'fair'"),
        ({"tiers": "H H"}, r"algorithm.tiers = 'H H'"),
        ({"local_steps": 4, "global_steps": 6}, r"P must be a multiple of Q .*, for example 8"),
    ],
)
def test_bad_settings(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        ABCD(**settings)


@pytest.mark.parametrize(
    ("federation", "tiers"),
    [
        (FederationSettings(silos=3), "V(10)"),
        (FederationSettings(silos=2, clients=4), "V(10) H(10)"),
        (FederationSettings(silos=2, clients=4, groups=2), "H(10) V(10) H(10)"),
    ],
)
def test_it_runs_on_the_tiers_of_the_federation(federation: FederationSettings, tiers: str) -> None:
    data = federate(load_dataset("breast_cancer"), federation, seed=0)
    simulator = Simulator(data, build_task(data, ModelSettings("linear"), seed=0), ABCD(batch_size=50))
    assert str(simulator.algorithm.topology) == tiers
    before = simulator.objective()
    for _ in range(5):
        simulator.run_round()
    assert simulator.objective() < before


def test_a_window_larger_than_memory_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    data = federate(load_dataset("breast_cancer"), FederationSettings(silos=2), seed=0)
    task = build_task(data, ModelSettings("linear"), seed=0)
    pages = {"SC_PHYS_PAGES": 10, "SC_PAGE_SIZE": 4096}
    monkeypatch.setattr(os, "sysconf", pages.__getitem__)
    with pytest.raises(ConfigError, match=r"algorithm.window = 9: .* half of this machine's memory .*: use at most 3"):
        Simulator(data, task, ABCD(batch_size=50, window=9))
    Simulator(data, task, ABCD(batch_size=50, window=3))
    Simulator(data, task, ABCD(batch_size=None, window=9))
