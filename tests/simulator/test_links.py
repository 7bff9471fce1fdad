"""The links by themselves: bytes of every round are the wire's, and who gets no message does not wait for it."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from crosshatch import wire
from crosshatch.algorithms.tdcd import TDCD
from crosshatch.meter import Meter
from crosshatch.network import Clocks, ConstantNetwork
from crosshatch.protocol.batches import SeededBatches
from crosshatch.protocol.message_contents import Always, Call
from crosshatch.simulator.accounting.legs import ClientLeg
from crosshatch.simulator.accounting.links import Links
from crosshatch.simulator.simulator import Simulator
from crosshatch.simulator.vertical.batch import Draws
from crosshatch.testing.federations import make_data, make_task
from tests.simulator.message_log import log_messages


@pytest.mark.parametrize("round", [100, 200, 70_000])
def test_the_number_of_a_round_is_part_of_its_messages(round: int) -> None:
    """A larger number takes more bytes: prices that were looked up for a small one are not its."""
    simulator = Simulator(make_data((3, 2)), make_task(2), TDCD(2, 0.1, 8), threads=1)
    simulator.run_round()
    messages = log_messages(simulator)
    before, simulator.round = simulator.meter.bytes, round
    simulator.run_round()
    sent = sum(wire.size(r, exchange, specs, use=use) for _, _, r, exchange, use, specs in messages)
    assert messages
    assert simulator.meter.bytes - before == sent


def test_who_gets_no_message_does_not_wait_for_it() -> None:
    """A slow client is told once; what the other is told later does not hold it up."""
    network = ConstantNetwork(t_comm=2.0, slow={"bank/0": 10.0})  # a message takes it 10 s, the other 1 s
    links = Links(["bank"], network, Meter(), Clocks(np.zeros(1)))
    draws = Draws(SeededBatches(0), [np.array([0, 1])], [2], in_order_of_ids=False, device=torch.device("cpu"))
    batch, second = draws.draw(None, round=0, parts=1, first=0), np.array([0, 1])
    call, contents = Call("share", 0), [Always(((torch.float32, (1,)),))]
    links.send(batch, ClientLeg(call, "down", (0,), contents))  # 10 and 1
    links.send(batch, ClientLeg(call, "up", (0,), contents, rows=second))
    assert links.clocks.hubs.tolist() == [2.0]
    links.send(batch, ClientLeg(call, "down", (0,), contents, rows=second))  # 10 still, and 3
    arrivals = links.send(batch, ClientLeg(call, "up", (0,), contents))
    assert arrivals.tolist() == [20.0, 4.0]
    assert links.clocks.hubs.tolist() == [20.0]
    assert links.meter.messages == 6
