"""Bytes of an encrypted transfer: what ciphertexts take as messages, encoded and counted."""

from __future__ import annotations

from typing import Any

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
from crosshatch.privacy.operations import OperationSeconds
from tests.simulator.written import Written

ROWS, WIDTH, HIDDEN, STEPS, ROUNDS = 150, 3, 4, 2, 2
CIPHERTEXT, PLAINTEXT = 512, 256  # bytes under a key of 2048 bits


def rows_of_bytes(count: int, length: int) -> Tensor:
    return torch.zeros(count, length, dtype=torch.uint8)


@pytest.mark.parametrize("ciphertexts", ["costs", "real"])
def test_metered_bytes_are_wire_bytes(ciphertexts: Any) -> None:
    """A gradient of up to 63 numbers of 171 bits: 11 of them per ciphertext."""
    silos = (SiloSettings("a", span=(0, 11)), SiloSettings("b", span=(11, 15)))
    data = federate(load_dataset("breast_cancer"), FederationSettings(silos=silos, labels="a", common=160), seed=0)
    settings = ModelSettings("mlp", hidden=(HIDDEN,), outputs=WIDTH, fusion="transfer", loss="taylor_logistic")
    task = build_task(data, settings, seed=0)
    seconds = OperationSeconds() if ciphertexts == "costs" else None
    privacy = PrivacySettings("paillier", 2048, ciphertexts=ciphertexts, seconds=seconds, accept_leakage=True)
    simulator = Simulator(data, task, FedBCD(STEPS, 0.1, ROWS, draw="anew"), threads=1, privacy=privacy)
    reach = ROWS * WIDTH * (WIDTH + 2) * 2 ** (4 * 40)
    slot = reach.bit_length() + 1
    assert (2048 - 2) // slot == 11
    numbers = {"a": HIDDEN * 12 + WIDTH * 5, "b": HIDDEN * 5 + WIDTH * 5}
    back = {name: -(-count // 11) for name, count in numbers.items()}
    assert back == {"a": 6, "b": 4}
    written = Written()
    components = rows_of_bytes(ROWS * WIDTH + WIDTH * (WIDTH + 1) // 2, CIPHERTEXT)
    for written.round in range(ROUNDS):
        written.send("hub-hub up", "components", components)
        written.send("hub-hub down", "components", components)
        for step in range(STEPS):
            written.send("hub-hub down", "masked_gradients", rows_of_bytes(back["a"], CIPHERTEXT), step=step)
            written.send("hub-hub up", "masked_gradients", rows_of_bytes(back["b"], CIPHERTEXT), step=step)
            written.send("hub-hub up", "read_gradients", rows_of_bytes(back["a"], PLAINTEXT), step=step)
            written.send("hub-hub down", "read_gradients", rows_of_bytes(back["b"], PLAINTEXT), step=step)
        simulator.run_round()
    written.assert_metered(simulator)
