"""The example of noise: both engines send the same numbers, private to the sender and never the same twice."""

from __future__ import annotations

import runpy
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from crosshatch import Simulator
from crosshatch.algorithms.hsgd import HSGD
from crosshatch.algorithms.tdcd import TDCD
from crosshatch.codecs import AnyCodec, Chain, Draw, ErrorFeedback, Step, TopK
from crosshatch.data.federated import FederatedData
from crosshatch.exchanges import Algorithm
from crosshatch.private_randomness import PrivateSeed
from crosshatch.testing.parties.engine import PartyByParty
from tests.architecture.modules import ROOT
from tests.equivalence.hospitals import hospitals, model

SECRET = PrivateSeed("0badcafe", bytes(range(32)))
Noise: Any = runpy.run_path(str(ROOT / "examples" / "noise.py"))["Noise"]
ONE, HELD = hospitals([24], per_device=3), hospitals([24], per_device=3, labels="hospital")


@pytest.mark.parametrize(
    ("data", "algorithm", "fusion", "exchanges"),
    [
        (ONE, TDCD(3, 0.05, 10), "sum", ("average",)),
        (ONE, TDCD(3, 0.05, 10), "head", ("average", "share")),
        (HELD, TDCD(2, 0.05, 10), "sum", ("average", "share", "derivatives")),
        (hospitals([8, 12]), HSGD(4, 2, 0.05, 0.5), "head", ("average", "share")),
    ],
)
@pytest.mark.parametrize("after", [None, "topk", "feedback"])
def test_both_engines_send_the_same(
    data: FederatedData, algorithm: Algorithm, fusion: str, exchanges: tuple[str, ...], after: str | None
) -> None:
    noise: Step = Noise(0.01, SECRET)
    made: dict[str | None, AnyCodec] = {
        None: noise,
        "topk": Chain(noise, TopK(0.5)),
        "feedback": ErrorFeedback(Chain(noise, TopK(0.5))),
    }
    codecs = dict.fromkeys(exchanges, made[after])
    parties = PartyByParty(data, model(fusion), algorithm, codecs=codecs)
    noisy, plain = (
        Simulator(data, model(fusion), algorithm, codecs=one, precision=torch.float64, threads=1)
        for one in (codecs, {})
    )
    for _ in range(4):
        for engine in (parties, noisy, plain):
            engine.run_round()
    for ours, theirs in zip(noisy.state.weights, parties.weights, strict=True):
        assert torch.allclose(ours, theirs, rtol=0, atol=1e-12)
    assert noisy.meter.links == parties.meter.links
    assert noisy.meter.exchanges == parties.meter.exchanges
    apart = max(float((a - b).abs().max()) for a, b in zip(noisy.state.weights, plain.state.weights, strict=True))
    assert apart > 1e-4


def test_noise_is_normal_and_as_large_as_asked() -> None:
    zeros, draw = np.zeros((1, 20_000)), Draw(1, "average:0", (3, 0, 4))
    (found,) = Noise(0.5, SECRET).change(zeros, [draw])
    assert abs(found.mean()) < 4 * 0.5 / np.sqrt(len(found))
    assert abs(found.std() / 0.5 - 1) < 4 / np.sqrt(2 * len(found))
    inside = np.mean(np.abs(found) < 0.5)
    assert abs(inside - 0.6827) < 0.015


def test_nothing_is_covered_twice() -> None:
    noise, values, draw = Noise(1.0, SECRET), np.zeros((1, 8)), Draw(1, "average:0", (3, 0, 4))
    first = noise.change(values, [draw])
    assert np.array_equal(first, noise.change(values, [draw]))  # after a crash it says the same
    others = [
        noise.change(values, [replace(draw, numbers=numbers)]) for numbers in ((4, 0, 4), (3, 1, 4), (3, 0, 5))
    ] + [
        noise.change(values, [replace(draw, exchange="average:1")]),
        noise.change(values + 1, [draw]) - 1,  # set back, and given other numbers
        Noise(1.0, PrivateSeed("0badcafe", bytes(32))).change(values, [draw]),
    ]
    for other in others:
        assert np.abs(other - first).max() > 1e-3
