"""What is raced: synthetic federations of the sizes the papers use, with the model of each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from crosshatch.algorithms.abcd import ABCD
from crosshatch.algorithms.tdcd import TDCD
from crosshatch.data.dataset import Target
from crosshatch.data.federated import FederatedData, SiloData
from crosshatch.exchanges import Algorithm
from crosshatch.task.blocks.built_in import CNN, LSTM, MLP, Linear
from crosshatch.task.fusion import Sum
from crosshatch.task.losses import CrossEntropy, Logistic
from crosshatch.task.task import Task

BATCH = 2000


@dataclass(frozen=True)
class Case:
    """A model and a federation; `pieces` are the micro-batch sizes central training may choose from."""

    name: str
    silos: int
    clients: int
    shape: tuple[int, ...]  # of one silo's part of a sample
    block: Callable[[], nn.Module]
    classes: int = 2
    samples: int = 20_000
    pieces: tuple[int, ...] = (250, 500)
    heavy: bool = False  # a step takes tenths of a second: fewer repetitions
    on_request: bool = False  # only when asked for by name
    method: Callable[[int], Algorithm] = lambda q: TDCD(local_steps=q, batch_size=BATCH)

    def data(self) -> FederatedData:
        """Standard normal features, random labels, samples dealt to the clients of each silo anew."""
        draw = np.random.default_rng(1)
        torch.manual_seed(1)
        silos = tuple(
            SiloData(
                f"silo{j}", torch.randn(self.samples, *self.shape), torch.zeros(2, *self.shape), (),
                draw.integers(self.clients, size=self.samples), self.clients,
            )
            for j in range(self.silos)
        )  # fmt: skip
        return FederatedData(silos, self._labels(self.samples), self._labels(2), self.target, self.classes)

    @property
    def target(self) -> Target:
        """The kind of label."""
        return "binary" if self.classes == 2 else "multiclass"

    def _labels(self, count: int) -> Tensor:
        labels = torch.randint(self.classes, (count,))
        return labels.float() if self.classes == 2 else labels

    def task(self) -> Task:
        """The blocks, freshly made."""
        torch.manual_seed(2)
        loss = Logistic() if self.classes == 2 else CrossEntropy()
        return Task(tuple(self.block() for _ in range(self.silos)), Sum(), loss)


CASES = (
    Case("logistic", 2, 10, (357,), lambda: Linear((357,), 1)),
    Case("logistic-17", 17, 10, (42,), lambda: Linear((42,), 1)),
    Case("mlp", 2, 50, (357,), lambda: MLP((357,), 1, hidden=(64,))),
    Case("abcd", 4, 1, (179,), lambda: MLP((179,), 1, hidden=(64,)), method=lambda q: ABCD(q, batch_size=BATCH)),
    Case("cnn", 2, 10, (1, 28, 14), lambda: CNN((1, 28, 14), 10), 10, pieces=(250,), heavy=True),
    Case("cnn-50", 2, 50, (1, 28, 14), lambda: CNN((1, 28, 14), 10), 10, pieces=(250,), heavy=True, on_request=True),
    Case("lstm", 4, 20, (48, 19), lambda: LSTM((48, 19), 1), samples=8_000, pieces=(250, 500), heavy=True),
)
