"""Parts of a user's own that do what built-in ones do, so that runs can be held against each other."""

from __future__ import annotations

SOURCE = '''
from dataclasses import dataclass

import numpy as np
import torch

from crosshatch.exchanges import LocalSteps
from crosshatch import Topology
from crosshatch.codecs import Stage


@dataclass(frozen=True)
class Mine:
    """FedBCD."""

    local_steps: int = 3
    step_size: float = 0.1
    batch_size: int | None = None

    @property
    def topology(self):
        return Topology.parse(f"V({self.local_steps})")

    def run_round(self, fed, blocks, r):
        batch = fed.draw_batch(self.batch_size, round=r)
        frozen = fed.share(fed.embed(blocks, batch), batch)
        return fed.descend(blocks, batch, frozen, LocalSteps(self.local_steps, self.step_size))


class Plain:
    """Cross-entropy."""

    target = "multiclass"

    def scores(self, classes):
        return classes

    def value(self, scores, y):
        return torch.logsumexp(scores, -1) - scores.gather(-1, y.unsqueeze(-1)).squeeze(-1)

    def derivative(self, scores, y):
        return torch.softmax(scores, -1) - torch.nn.functional.one_hot(y, scores.shape[-1])

    def predict(self, scores):
        return torch.softmax(scores, -1)


@dataclass(frozen=True)
class Rounded(Stage):
    """Half precision."""

    digits: int = 12

    keeps_all = False

    def kept(self, n):
        return n

    def kind(self, kind):
        return np.dtype("<f2")

    def side_size(self, n, kind):
        return 0

    def reduce(self, values, draws):
        return (), np.round(values, self.digits).astype("<f2")

    def write(self, parts, n):
        return b""

    def read(self, data, n, kind, draw):
        return ()

    def restore(self, parts, values, n, kind):
        return values.astype(kind)


@dataclass(frozen=True)
class Falling:
    """One over the square root."""

    start: float

    def __call__(self, round):
        return self.start / (round + 1) ** 0.5


class Net(torch.nn.Linear):
    def __init__(self, input_shape, outputs):
        super().__init__(input_shape[0], outputs)
        torch.nn.init.zeros_(self.weight)
        torch.nn.init.zeros_(self.bias)


def hits(scores, y, loss):
    return (scores.argmax(1) == y).double().mean()


hits.higher_is_better = True


def misses(scores, y, loss):
    return 1 - hits(scores, y, loss)
'''

CONFIG = """
[data]
name = "wine"
[model]
block = "mine.py:Net"
loss = "mine.py:Plain"
[algorithm]
name = "mine.py:Mine"
batch_size = 50
[codecs]
share = "mine.py:Rounded(digits=12)"
[evaluate]
every = 2
metrics = ["accuracy", "mine.py:hits", "mine.py:misses"]
higher_is_better = {misses = false}
targets = ["hits=0.5", "misses=0.2"]
[run]
rounds = 6
threads = 1
"""

BUILT_IN = """
[data]
name = "wine"
[algorithm]
name = "fedbcd"
local_steps = 3
batch_size = 50
[codecs]
share = "half"
[evaluate]
every = 2
metrics = ["accuracy"]
[run]
rounds = 6
threads = 1
"""
