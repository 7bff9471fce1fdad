"""The image setting of the HSGD paper: 10 groups of a hospital and 3,458 devices, 1% of them at work, a CNN each.

A device holds one image part, and the two CNNs meet in a trained head at the hospital. Central training takes the same
number of samples, 10 x 35, in one batch or in pieces. The paper's own setting is P = Q = 1, one step from a common
start; with more steps every device goes its own way with a single image, the harder case, and the table shows that too.
"""

from __future__ import annotations

import time

import numpy as np
import torch
from torch import nn

from benchmarks.central import Central
from benchmarks.race import Result, take_turns
from crosshatch.algorithms.hsgd import HSGD
from crosshatch.data.federated import FederatedData, SiloData
from crosshatch.simulator.allocator import keep_freed_memory
from crosshatch.simulator.simulator import Simulator
from crosshatch.task.blocks.built_in import CNN
from crosshatch.task.fusion import Head
from crosshatch.task.losses import CrossEntropy
from crosshatch.task.task import Task

NAME = "hsgd-cnn"
GROUPS, DEVICES, FRACTION, CLASSES = 10, 3458, 0.01, 11
_HOSPITAL, _DEVICE = (1, 28, 11), (1, 28, 17)  # 308 and 476 pixels; the paper has 300 and 484
_EMBEDDING = 32


def data() -> FederatedData:
    """Random images: one hospital per group, one device per sample."""
    torch.manual_seed(1)
    count = GROUPS * DEVICES
    group = np.repeat(np.arange(GROUPS), DEVICES)
    owners = {"hospital": (group, GROUPS, _HOSPITAL), "device": (np.arange(count), count, _DEVICE)}
    silos = tuple(
        SiloData(name, torch.randn(count, *shape), torch.zeros(2, *shape), (), whose, parties)
        for name, (whose, parties, shape) in owners.items()
    )
    labels = torch.randint(CLASSES, (count,))
    return FederatedData(silos, labels, labels[:2], "multiclass", CLASSES, None, group, (GROUPS,))


def task() -> Task:
    """The blocks and the head, freshly made."""
    torch.manual_seed(2)
    blocks = (CNN(_HOSPITAL, _EMBEDDING), CNN(_DEVICE, _EMBEDDING))
    head = Head(nn.Linear(2 * _EMBEDDING, CLASSES), 0)
    return Task(blocks, head, CrossEntropy(), silos=("hospital", "device"))


def run(local_steps: int, threads: int, *, turns: int) -> Result:
    """Race a round of HSGD (P = Q) against central training on as many samples."""
    torch.set_num_threads(threads)
    keep_freed_memory()
    federated = data()
    algorithm = HSGD(local_steps, local_steps, step_size=0.1, fraction=FRACTION)
    simulator = Simulator(federated, task(), algorithm, seed=1, threads=threads)
    batch = GROUPS * max(1, int(FRACTION * DEVICES + 0.5))
    contestants = {"ours": simulator.run_round}
    for name, piece in (("one batch", None), ("pieces of 50", 50)):
        contestants[name] = Central(federated, task(), steps=local_steps, piece=piece, batch=batch).run_round
    clock = time.process_time if threads == 1 else time.perf_counter
    times = take_turns(contestants, turns, clock)
    step = {name: [1000 * seconds / local_steps for seconds in seen] for name, seen in times.items()}
    strategy = "one pass" if local_steps == 1 else simulator.strategies["device"]
    return Result(NAME, local_steps, threads, strategy, step)
