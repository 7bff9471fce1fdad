"""Noise on what clients send to their hub: a step of your own, put in by one line.

Run this file, or take its class: `Simulator(..., codecs={"average": Noise(0.01, PrivateSeed.fresh("run"))})`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

import crosshatch as ch
from crosshatch.codecs import Draw, Step
from crosshatch.codecs.codec import Array
from crosshatch.private_randomness import Covering, PrivateSeed

GRID = 2.0**-20  # numbers are rounded to it first: their last digits would tell what the noise is to hide


@dataclass(frozen=True)
class Noise(Step):
    """Normal noise of one deviation on every number, which nobody but its sender can draw again.

    The noise belongs to one message and to the numbers in it: other numbers never get the same. Whoever simulates all
    parties has all their secrets, so here one serves everybody and the sender is part of the message's name.
    """

    deviation: float
    private: PrivateSeed

    def change(self, values: Array, draws: Sequence[Draw | None]) -> Array:
        """Values (m, n), a message each."""
        rounded = np.round(values / GRID) * GRID
        noise = [self._noise(row, draw) for row, draw in zip(rounded, draws, strict=True)]
        changed: Array = rounded + self.deviation * np.array(noise)
        return changed

    def _noise(self, row: Array, draw: Draw | None) -> Array:
        assert draw is not None
        round, use, sender = draw.numbers
        message = Covering("hub", (round, f"{draw.exchange} from {sender}", use), (torch.from_numpy(row),))
        return self.private.normal("noise", message, len(row))


def main() -> None:
    """Train with noise on how far every client moved."""
    data = ch.federate(ch.load_dataset("breast_cancer"), ch.FederationSettings(silos=2, clients=5), seed=0)
    task = ch.build_task(data, ch.ModelSettings(block="linear"), seed=0)
    noise = {"average": Noise(0.01, PrivateSeed.fresh("example"))}
    simulator = ch.Simulator(data, task, ch.TDCD(local_steps=10, step_size=0.1, batch_size=64), codecs=noise)
    for _ in range(30):
        simulator.run_round()
    print(f"AUC {simulator.evaluate()['auc']:.4f} with noise on what every client sends to its hub")


if __name__ == "__main__":
    main()
