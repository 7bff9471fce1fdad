"""HSGD's messages against formula (19) of Yu et al., message by message.

The formula counts numbers, not bytes. It counts every exchange one way: a device's model to its edge node, the devices'
embeddings from edge node to hospital, the hospital's embeddings and the head back, the hospital's model to the server.
It leaves out the other direction of all averages, the devices' own legs of the exchange, the head and the devices'
model on their way to the server, and frames. Groups are of one size, each with the same number of selected devices.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

import pytest
import torch

from crosshatch import wire
from crosshatch.algorithms.hsgd import HSGD
from crosshatch.data.build import federate, load_dataset
from crosshatch.data.data_settings import FederationSettings, SiloSettings
from crosshatch.simulator.simulator import Simulator
from crosshatch.task.build_task import ModelSettings, build_task
from tests.simulator.message_log import Message, log_messages

GROUPS, SAMPLES, DEVICES, WIDTH = 3, 20, 5, 6


@dataclass(frozen=True)
class Sizes:
    """How many numbers travel: the sub-models, the selected devices a group and the embeddings."""

    head: int  # |theta_0|
    hospital: int  # |theta_1|
    device: int  # |theta_2|
    devices: int  # |A|, selected in each group
    from_hospital: int  # |Z_1|, embeddings of the batch sent to the devices
    from_devices: int  # |Z_2|, embeddings sent to the hospital

    def formula(self, p: int, q: int, *, iterations: int) -> float:
        """Formula (19), C(P, Q): the hospital's model once a global round, all else once a local one."""
        every_round = self.devices * self.device + self.head + self.from_hospital + self.from_devices
        return (self.hospital / p + every_round / q) * GROUPS * iterations


def play(p: int, q: int, rounds: int) -> tuple[Simulator, list[Message], Sizes]:
    """HSGD on three groups of twenty devices, five selected, with everything that was sent."""
    silos = (SiloSettings("hospital", columns=("mean*",)), SiloSettings("device", columns=("worst*",), clients="each"))
    dataset = load_dataset("breast_cancer")
    few = dataset.train.take(torch.arange(GROUPS * SAMPLES).numpy())
    data = federate(replace(dataset, train=few), FederationSettings(silos, groups=GROUPS), seed=0)
    model = ModelSettings("linear", fusion="head", outputs=WIDTH, head_holder="hospital")
    task = build_task(data, model, seed=0)
    simulator = Simulator(data, task, HSGD(p, q, 0.01, DEVICES / SAMPLES), threads=1)
    messages = log_messages(simulator)
    for _ in range(rounds):
        simulator.run_round()
    hospital, device = (layout.size for layout in task.layouts)
    assert task.head_layout is not None
    embeddings = DEVICES * WIDTH  # one sample a device
    return simulator, messages, Sizes(task.head_layout.size, hospital, device, DEVICES, embeddings, embeddings)


def numbers(messages: list[Message]) -> int:
    """Numbers in these messages."""
    return sum(prod(shape) for message in messages for _, shape in message[5])


@pytest.mark.parametrize(("p", "q"), [(1, 1), (4, 4), (6, 2)])
def test_the_legs_it_speaks_of(p: int, q: int) -> None:
    """One way of each exchange comes to the formula exactly, the head on its way to the server left out."""
    iterations = 2 * p
    _, messages, sizes = play(p, q, iterations // q)
    to_edge = [m for m in messages if m[3] == "average"]
    between = [m for m in messages if m[3] == "share" and "/" not in m[0] + m[1]]  # no device at either end
    to_server = [m for m in messages if m[3] == "average_groups" and m[0].startswith("hospital") and m[1] == "server"]
    counted = numbers(to_edge) + numbers(between) + numbers(to_server) - len(to_server) * sizes.head
    assert counted == sizes.formula(p, q, iterations=iterations)


@pytest.mark.parametrize(("p", "q"), [(1, 1), (4, 4), (6, 2)])
def test_what_it_leaves_out(p: int, q: int) -> None:
    """With the other legs written out by hand and the frames added, the metered bytes are the formula's."""
    iterations = 2 * p
    simulator, messages, sizes = play(p, q, iterations // q)
    formula = sizes.formula(p, q, iterations=iterations)
    models_down = DEVICES * sizes.device  # edge to devices
    own_legs = sizes.from_devices + sizes.from_hospital + DEVICES * sizes.head  # devices to edge and back
    all_models = sizes.head + sizes.hospital + sizes.device  # the server's average, both ways; (19) has one of them
    above = 2 * all_models - sizes.hospital
    left_out = ((models_down + own_legs) / q + above / p) * GROUPS * iterations
    assert numbers(messages) == formula + left_out
    frames = sum(wire.size(m[2], m[3], m[5], use=m[4]) - 4 * numbers([m]) for m in messages)
    assert simulator.meter.bytes == 4 * (formula + left_out) + frames
