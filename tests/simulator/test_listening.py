"""What a listener hears: every message between silos, its rows in the order of its ids, whoever holds the samples."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pytest
import torch
from torch import Tensor

from crosshatch import TDCD, FedAvg, FederationSettings, ModelSettings, Simulator, build_task, federate, load_dataset
from crosshatch.data.federated import FederatedData
from crosshatch.errors import ConfigError
from crosshatch.exchanges import Algorithm
from crosshatch.simulator.listening import Heard

MODEL = ModelSettings("linear", zero_init=False)


def listened(algorithm: Algorithm, labels: str = "shared") -> tuple[Simulator, list[Heard]]:
    federation = FederationSettings(silos=3, clients=4, labels=labels)
    data = federate(load_dataset("breast_cancer"), federation, seed=0)
    simulator = Simulator(data, build_task(data, MODEL, seed=0), algorithm, threads=1, precision=torch.float64)
    heard: list[Heard] = []
    simulator.listen(heard.append)
    return simulator, heard


def scores_of(data: FederatedData, weights: tuple[Tensor, ...], silo: int, ids: Tensor) -> Tensor:
    """Of a linear block, by hand."""
    return data.silos[silo].train[ids] @ weights[silo][:-1] + weights[silo][-1]


@pytest.mark.parametrize("batches", ["reused", "fresh"])
def test_embeddings_of_clients_in_the_order_of_the_ids(batches: Literal["reused", "fresh"]) -> None:
    simulator, heard = listened(TDCD(local_steps=3, batch_size=40, batches=batches))
    for _ in range(3):
        before = simulator.weights
        heard.clear()
        simulator.run_round()
        parts = 3 if batches == "fresh" else 1
        assert [(m.exchange, m.sender, m.receivers, m.part) for m in heard] == [
            ("share", j, tuple(i for i in range(3) if i != j), s) for j in range(3) for s in range(parts)
        ]
        for m in heard:
            assert len(np.unique(m.ids)) == 40
            torch.testing.assert_close(
                m.values[:, 0], scores_of(simulator.data, before, m.sender, torch.from_numpy(m.ids)), rtol=0, atol=1e-12
            )


@pytest.mark.parametrize("derivatives", ["each_round", "each_step"])
def test_derivatives_in_the_order_of_the_ids(derivatives: Literal["each_round", "each_step"]) -> None:
    simulator, heard = listened(TDCD(local_steps=2, batch_size=40, derivatives=derivatives), labels="silo2")
    simulator.run_round()
    heard.clear()
    before = simulator.weights
    simulator.run_round()
    first = [m for m in heard if m.use == 0]
    assert {(m.exchange, m.sender, m.receivers) for m in first} == {
        ("share", 0, (1,)),
        ("share", 2, (1,)),
        ("derivatives", 1, (0, 2)),
    }
    (sent,) = [m for m in first if m.exchange == "derivatives"]
    ids = torch.from_numpy(sent.ids)
    scores = torch.stack([scores_of(simulator.data, before, j, ids) for j in range(3)]).sum(0)
    wanted = torch.sigmoid(scores) - simulator.data.y_train[ids]
    torch.testing.assert_close(sent.values[:, 0], wanted, rtol=0, atol=1e-12)
    assert len(heard) == len(first) * (2 if derivatives == "each_step" else 1) + (derivatives == "each_step")


def test_listening_changes_nothing() -> None:
    simulator, _ = listened(TDCD(local_steps=3, batch_size=40))
    data = federate(load_dataset("breast_cancer"), FederationSettings(silos=3, clients=4), seed=0)
    alone = Simulator(
        data, build_task(data, MODEL, seed=0), TDCD(local_steps=3, batch_size=40), threads=1, precision=torch.float64
    )
    for _ in range(3):
        simulator.run_round()
        alone.run_round()
    assert all(torch.equal(a, b) for a, b in zip(simulator.weights, alone.weights, strict=True))
    assert simulator.meter.bytes == alone.meter.bytes


def test_nothing_to_hear() -> None:
    data = federate(load_dataset("breast_cancer"), FederationSettings(silos=1, clients=4), seed=0)
    simulator = Simulator(data, build_task(data, MODEL, seed=0), FedAvg(), threads=1)
    with pytest.raises(ConfigError, match=r"silos send each other no messages with FedAvg on 1 silos"):
        simulator.listen(lambda _: None)
