"""Bytes of encrypted exchanges: what real ciphertexts take as messages, encoded and counted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from crosshatch import (
    FedBCD,
    FederationSettings,
    ModelSettings,
    PrivacySettings,
    SiloSettings,
    Simulator,
    build_task,
    federate,
    load_dataset,
)
from crosshatch.privacy.fixed_point import FixedPoint
from crosshatch.privacy.masked_gradients import LabelHolder, LinearSilo
from crosshatch.privacy.operations import OperationSeconds
from crosshatch.privacy.paillier import generate_keys
from tests.privacy.keys import nobody, seeded
from tests.simulator.written import Written, numbers

ROWS, ROUNDS = 400, 3
KEY = generate_keys(2048, draw=seeded(1))


def as_tensor(sent: Any) -> Tensor:
    return torch.as_tensor(np.array(sent))


@pytest.mark.parametrize("ciphertexts", ["costs", "real"])
def test_metered_bytes_are_wire_bytes(ciphertexts: Any) -> None:
    """Silo a has 22 columns and a bias, which take two ciphertexts of 22 slots."""
    silos = (SiloSettings("a", span=(0, 22)), SiloSettings("b", span=(22, 24)), SiloSettings("c", span=(24, 30)))
    data = federate(load_dataset("breast_cancer"), FederationSettings(silos=silos, labels="c"), seed=0)
    task = build_task(data, ModelSettings(), seed=0)
    seconds = OperationSeconds() if ciphertexts == "costs" else None
    privacy = PrivacySettings("paillier", 2048, ciphertexts=ciphertexts, seconds=seconds, accept_leakage=True)
    simulator = Simulator(data, task, FedBCD(2, 0.1, ROWS, draw="anew"), threads=1, privacy=privacy)
    written, point = Written(), FixedPoint()
    holder, silo = LabelHolder(KEY, point), LinearSilo(KEY.public, point)
    asking = {"a": 23, "b": 3}
    sent = holder.encrypt(np.ones((ROWS, 1), np.int64), asking)
    answers = [silo.mask(sent, np.ones((ROWS, n), np.int64), outputs=1, peer="c")[0] for n in asking.values()]
    read = [holder.decrypt(answer, peer=peer, count=nobody) for peer, answer in zip(asking, answers, strict=True)]
    assert [len(answer) for answer in answers] == [2, 1]
    for written.round in range(ROUNDS):
        for answer, back in zip(answers, read, strict=True):
            written.send("hub-hub up", "share", numbers(ROWS, 1))
            written.send("hub-hub down", "derivatives", as_tensor(sent))
            written.send("hub-hub up", "masked_gradients", as_tensor(answer))
            written.send("hub-hub down", "read_gradients", as_tensor(back))
        simulator.run_round()
    written.assert_metered(simulator)
