"""Random codecs: no two messages of a run share their chance, however often an exchange is used in a round."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from crosshatch.algorithms.tiered import Tiered
from crosshatch.codecs import Draw, parse_codec
from crosshatch.simulator.simulator import Simulator
from crosshatch.testing.check_federation import check_rounds
from crosshatch.testing.federations import FederationCase, make_data, make_task
from tests.support.senders import Absences

RANDOM = parse_codec("randomk(0.5)")
TREE = replace(make_data((4, 4)), branches=(2,))
CASES = [
    # depth 1 is averaged, and sends, four times in a round
    FederationCase("branches", TREE, make_task(2), Tiered("V(4) H(4) H(1)", 0.1, batch_size=8),
                   {"average": RANDOM, "broadcast": RANDOM}),
    FederationCase("head", make_data((2, 2, 2)), make_task(3, holder=0), Absences(((0, 1, 2), (0, 2))),
                   {"head": RANDOM, "share": RANDOM}),
]  # fmt: skip


def in_double(*arguments: Any, **options: Any) -> Simulator:
    return Simulator(*arguments, precision=torch.float64, threads=1, **options)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_every_message_has_chance_of_its_own(case: FederationCase, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: Counter[Draw] = Counter()
    real = Draw.generator

    def generator(self: Draw) -> np.random.Generator:
        seen[self] += 1
        return real(self)

    monkeypatch.setattr(Draw, "generator", generator)
    simulator = in_double(case.data, case.task, case.algorithm, codecs=case.codecs)
    simulator.run_round()
    simulator.run_round()
    assert {draw.exchange.split(":")[0] for draw in seen} == set(case.codecs)
    assert seen.most_common(1)[0][1] == 1


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_both_ends_name_it_alike(case: FederationCase) -> None:
    check_rounds(in_double, case, rounds=3)
