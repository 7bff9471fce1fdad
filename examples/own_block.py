"""Blocks of your own: any module that takes a silo's samples (n, ...) and returns one row of outputs each.

Run this file, or name its class in a config: `block = "own_block.py:Gated"`.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from crosshatch import TDCD, CrossEntropy, FederationSettings, Simulator, Sum, Task, federate, load_dataset


class Gated(nn.Module):
    """A linear layer, and a second one that says how much of it counts: (n, features) to (n, outputs)."""

    def __init__(self, input_shape: tuple[int, ...], outputs: int, width: int = 8) -> None:
        super().__init__()
        (features,) = input_shape
        self.value = nn.Linear(features, width)
        self.gate = nn.Linear(features, width)
        self.last = nn.Linear(width, outputs)

    def forward(self, x: Tensor) -> Tensor:
        """One row of outputs a sample."""
        out: Tensor = self.last(self.value(x) * self.gate(x).sigmoid())
        return out


def main() -> None:
    """Train on the wine data, two silos of three clients."""
    data = federate(load_dataset("wine"), FederationSettings(silos=2, clients=3), seed=1)
    torch.manual_seed(1)
    blocks = tuple(Gated(tuple(silo.train.shape[1:]), data.classes) for silo in data.silos)
    task = Task(blocks, Sum(), CrossEntropy(), silos=tuple(silo.name for silo in data.silos))
    simulator = Simulator(data, task, TDCD(local_steps=5, step_size=0.2), seed=1)
    for _ in range(20):
        simulator.run_round()
    print(f"accuracy {simulator.evaluate()['accuracy']:.4f}, computed by {simulator.strategies}")


if __name__ == "__main__":
    main()
