"""Small federations for transfer between two silos, for engines to be held against each other."""

from dataclasses import replace

import numpy as np
import torch
from torch import nn

from crosshatch.algorithms.abcd import ABCD
from crosshatch.algorithms.fedbcd import FedBCD
from crosshatch.algorithms.fedsgd import FedSGD
from crosshatch.codecs import parse_codec
from crosshatch.data.federated import FederatedData, OwnSamples
from crosshatch.exchanges import Algorithm
from crosshatch.schedules import InverseSqrt
from crosshatch.task.blocks import ClassMean
from crosshatch.task.fusion import Head
from crosshatch.task.losses import Logistic, Loss, TaylorLogistic
from crosshatch.task.optimisers import Adam
from crosshatch.task.regulariser import Regulariser
from crosshatch.task.task import Task
from crosshatch.testing.federations import FederationCase, make_data
from crosshatch.transfer.objective import Transfer

_COLUMNS, _WIDTH = 3, 4


def transfer_data(*, holder: int = 0, held: bool = False, alone: int = 9) -> FederatedData:
    """Two silos with 20 samples in common, and so many that the silo with the labels has alone."""
    data = make_data((1, 1), held=holder if held else None)
    if not alone:
        return data
    rng = np.random.default_rng(23)
    x, y = torch.as_tensor(rng.normal(size=(alone, _COLUMNS))), torch.as_tensor(rng.integers(0, 2, alone)).double()
    return replace(data, alone=OwnSamples(f"silo{holder}", x, y))


def transfer_task(transfer: Transfer, loss: Loss | None = None, *, holder: int = 0) -> Task:
    """A network with a hidden layer in each silo, tied together."""
    with torch.random.fork_rng():
        torch.manual_seed(5)
        blocks = tuple(nn.Sequential(nn.Linear(_COLUMNS, 5), nn.Tanh(), nn.Linear(5, _WIDTH)) for _ in range(2))
    head = Head(ClassMean(_WIDTH, low=_WIDTH * (1 - holder)), holder)
    return Task(blocks, head, loss or Logistic(), Regulariser(l2=0.01), ("silo0", "silo1"), transfer=transfer)


def transfer_cases() -> tuple[FederationCase, ...]:
    """Every exchange in every form that differs."""
    eta, product, distance = InverseSqrt(0.3), Transfer("product", 0.1), Transfer("distance", 0.1)
    bcd, turns = FedBCD(3, eta, 8), FedBCD(2, eta, 8, order="sequential")
    drawn = Transfer("product", 0.1, mean_samples=7)
    ahead, adam = ABCD(4, eta, 8, "silos", window=2), _case("transfer, FedBCD, Adam kept", bcd, product)
    return (
        _case("transfer, FedSGD", FedSGD(eta, 8), product),
        _case("transfer, FedBCD", bcd, product),
        _case("transfer, FedBCD, the second silo's labels, distance", bcd, distance, holder=1),
        _case("transfer, FedBCD, Taylor form", FedBCD(3, eta, proximal=0.5), distance, loss=TaylorLogistic()),
        _case("transfer, FedBCD in turn", turns, product),
        _case("transfer, FedBCD, labels held", bcd, product, held=True),
        _case("transfer, FedBCD in turn, labels held, Taylor", turns, distance, held=True, loss=TaylorLogistic()),
        _case("transfer, FedBCD, a draw for the class mean", bcd, drawn),
        _case("transfer, FedBCD in turn, labels held, a draw", turns, drawn, held=True),
        _case("transfer, ABCD", ahead, product),
        _case("transfer, ABCD, distance, labels held", ahead, distance, held=True, holder=1),
        _case("transfer, coded", bcd, product, share="topk(0.5)", head="half"),
        _case("transfer, labels held, coded", bcd, product, held=True, share="ef(topk(0.5))", derivatives="half"),
        replace(adam, task=replace(adam.task, optimiser=Adam(state="kept"))),
    )


def _case(
    name: str,
    algorithm: Algorithm,
    transfer: Transfer,
    *,
    holder: int = 0,
    held: bool = False,
    loss: Loss | None = None,
    **codecs: str,
) -> FederationCase:
    coded = {exchange: parse_codec(text) for exchange, text in codecs.items()}
    data, task = transfer_data(holder=holder, held=held), transfer_task(transfer, loss, holder=holder)
    return FederationCase(name, data, task, algorithm, coded)
