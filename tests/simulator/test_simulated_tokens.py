"""Tokens in the simulator: what is sent and how long it takes, blocks that are not linear, resuming, refusals."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from crosshatch import wire
from crosshatch.algorithms.dcpa import DCPA
from crosshatch.algorithms.mtcd import MTCD, STCD
from crosshatch.errors import ConfigError, ModelError, TrainingError
from crosshatch.graphs import Graph
from crosshatch.network import ConstantNetwork
from crosshatch.simulator.simulator import Simulator
from crosshatch.task.fusion import Head, Sum
from crosshatch.task.losses import CrossEntropy, Logistic
from crosshatch.task.regulariser import Regulariser
from crosshatch.task.task import Task
from tests.simulator.agents_case import features, make, tokens_of
from tests.simulator.message_log import Message, log_messages

RING = Graph("ring")
TIMES = ConstantNetwork(t_comm=10.0, t_comp=1.0)


def mlp(columns: int) -> nn.Module:
    torch.manual_seed(columns)
    return nn.Sequential(nn.Linear(columns, 4), nn.Tanh(), nn.Linear(4, 1))


class Curved(nn.Module):
    """Not a chain, and with outputs at the start."""

    def __init__(self, columns: int) -> None:
        super().__init__()
        torch.manual_seed(columns)
        self.weight = nn.Parameter(torch.randn(columns))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.exp(0.1 * x @ self.weight)[:, None]


def hear(simulator: Simulator, rounds: int) -> list[Message]:
    """Run, and keep every message from now on."""
    messages = log_messages(simulator)
    for _ in range(rounds):
        simulator.run_round()
    return messages


@pytest.mark.parametrize(
    "algorithm",
    [STCD(2, graph=RING), MTCD(3, 2, hops_between_averages=4, graph=RING), DCPA(graph=RING)],
    ids=["stcd", "mtcd", "dcpa"],
)
def test_metered_bytes_are_wire_bytes(algorithm: Any) -> None:
    simulator = make(algorithm, precision=torch.float32)
    messages = hear(simulator, 140)  # round 128 and on take a byte more
    encoded = 0
    for _, _, round, exchange, step, specs in messages:
        tensors = tuple(torch.zeros(shape, dtype=kind) for kind, shape in specs)
        encoded += len(wire.encode("0badcafe", round, exchange, tensors, use=step))
    assert simulator.meter.bytes == encoded
    assert simulator.meter.messages == len(messages) == simulator.communications
    assert all(specs == ((torch.float32, (12, 1)),) for *_, specs in messages)


def test_messages_go_along_edges_and_to_the_server_and_back() -> None:
    simulator = make(MTCD(3, 2, hops_between_averages=4, graph=RING))
    messages = hear(simulator, 8)
    kinds = Counter(m[3] for m in messages)
    assert kinds == {"pass token": 3 * 8, "average tokens": 2 * 3 * 2}
    assert simulator.meter.links["agent-server up"][1] == simulator.meter.links["agent-server down"][1] == 6
    for sender, receiver, _, exchange, *_ in messages:
        if exchange == "pass token":
            assert (int(sender[1:]) - int(receiver[1:])) % 4 in (1, 3)
        else:
            assert "server" in (sender, receiver)


def test_a_token_that_stays_sends_nothing() -> None:
    simulator = make(STCD(1, graph=RING, stay=True))
    before, moves = int(tokens_of(simulator).at[0]), 0
    for _ in range(30):
        simulator.run_round()
        after = int(tokens_of(simulator).at[0])
        moves, before = moves + (after != before), after
    assert 0 < moves < 30
    assert simulator.communications == moves


def test_a_hop_takes_the_steps_and_half_a_round_trip() -> None:
    simulator = make(STCD(7, graph=RING), network=TIMES)
    for _ in range(5):
        simulator.run_round()
    assert simulator.seconds == 5 * (7 * 1.0 + 5.0)


def test_a_slow_agent_holds_the_token_up() -> None:
    simulator = make(STCD(7, graph=RING), network=replace(TIMES, slow={"a1": 10.0}))
    expected = 0.0
    for _ in range(20):
        slow = tokens_of(simulator).at[0] == 1
        expected += (10 if slow else 1) * (7 + 5)  # its uplink is slow as well
        simulator.run_round()
        assert simulator.seconds == expected


def test_an_agent_serves_one_token_after_the_other() -> None:
    walks = np.array([[2, 2, 2], [2, 1, 1], [0, 0, 0]])
    simulator = make(MTCD(3, 4, hops_between_averages=0, graph=RING), walks=walks, network=TIMES)
    simulator.run_round()
    # tokens 0 and 1 are both at agent 2: the second waits, then hops; nobody else sends
    assert tokens_of(simulator).seconds.tolist() == [4.0, 8.0 + 5.0, 4.0]


def test_the_server_waits_for_the_last_token() -> None:
    walks = np.array([[2, 2], [1, 1]])
    network = replace(TIMES, slow={"a1": 3.0})
    simulator = make(MTCD(2, 4, hops_between_averages=1, graph=RING), walks=walks, network=network)
    simulator.run_round()
    # agent 1 takes 12 and its link 15 each way; the answer goes out at 27
    assert tokens_of(simulator).seconds.tolist() == [27.0 + 5.0, 27.0 + 15.0]


def test_tokens_that_meet_wait_for_each_other() -> None:
    walks = np.array([[2, 2], [2, 2]])
    simulator = make(MTCD(2, 4, hops_between_averages=0, graph=RING, meeting="average"), walks=walks, network=TIMES)
    simulator.run_round()
    tokens = tokens_of(simulator)
    assert tokens.seconds.tolist() == [8.0, 8.0]
    assert torch.equal(tokens.scores[0], tokens.scores[1])
    assert simulator.meter.messages == 0


def test_duals_wait_for_the_slowest_neighbour() -> None:
    simulator = make(DCPA(graph=Graph("path")), network=replace(TIMES, slow={"a0": 5.0}))
    simulator.run_round()
    # a step, then the mutual exchange; agent 0 takes 5 and 50, and only its neighbour hears of it
    assert simulator.state.snapshot()["seconds"].tolist() == [11.0, 55.0, 11.0, 11.0]


@pytest.mark.parametrize("block", [mlp, Curved])
def test_tokens_are_recomputed_where_blocks_are_not_linear(block: Any) -> None:
    simulator = make(MTCD(2, 3, 0.01, 5, RING), block=block)
    gathered = 0 if block is mlp else 4 + 2  # outputs at the start must be added up
    assert simulator.meter.messages == gathered
    first = simulator.objective()
    messages = hear(simulator, 10)
    kinds = Counter(m[3] for m in messages)
    assert kinds == {"pass token": 20, "average tokens": 2 * (4 + 2)}  # every agent up, every token down
    tokens = tokens_of(simulator)
    for g in range(2):
        start, outputs = 0, torch.zeros(12, 1, dtype=torch.float64)
        for k, x in enumerate(features(simulator)):
            size = simulator.task.layouts[k].size
            with torch.no_grad():
                outputs += simulator.task.embed(k, tokens.models[g, start : start + size], torch.as_tensor(x))
            start += size
        torch.testing.assert_close(tokens.scores[g], outputs, rtol=1e-9, atol=1e-9)
    assert simulator.objective() < first


@pytest.mark.parametrize("bias", [False, True])
def test_several_scores_a_sample(bias: bool) -> None:
    """Linear blocks by hand against the same blocks by automatic differentiation."""

    class Hidden(nn.Module):
        def __init__(self, columns: int) -> None:
            super().__init__()
            self.inner = nn.Linear(columns, 3, bias=bias)
            for parameter in self.inner.parameters():
                nn.init.zeros_(parameter)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            out: torch.Tensor = self.inner(x)
            return out

    options: dict[str, Any] = {"loss": CrossEntropy(), "regulariser": Regulariser(l2=0.1, l1=0.05)}
    algorithm = MTCD(3, 4, 0.02, 0, RING)
    by_hand = make(algorithm, block=lambda d: nn.Linear(d, 3, bias=bias), **options)
    automatic = make(algorithm, block=Hidden, **options)
    for _ in range(6):
        by_hand.run_round()
        automatic.run_round()
    assert set(by_hand.strategies.values()) == {"linear"}
    assert set(automatic.strategies.values()) == {"module"}
    torch.testing.assert_close(tokens_of(by_hand).models, tokens_of(automatic).models, rtol=1e-9, atol=1e-12)
    torch.testing.assert_close(tokens_of(by_hand).scores, tokens_of(automatic).scores, rtol=1e-9, atol=1e-12)
    assert by_hand.communications == 3 * by_hand.meter.messages


@pytest.mark.parametrize(
    ("algorithm", "block"),
    [
        (MTCD(3, 2, graph=RING, hops_between_averages=4), None),
        (MTCD(2, 2, 0.01, 3, RING), mlp),
        (DCPA(graph=RING), None),
    ],
    ids=["linear", "mlp", "dcpa"],
)
def test_a_resumed_run_ends_with_the_same_bits(algorithm: Any, block: Any) -> None:
    whole, first, second = (make(algorithm, block=block) for _ in range(3))
    for _ in range(10):
        whole.run_round()
    for _ in range(6):
        first.run_round()
    tensors, plain = first.snapshot()
    kept = {name: tensor.clone() for name, tensor in tensors.items()}
    first.run_round()
    assert all(torch.equal(kept[name], tensor) for name, tensor in tensors.items())  # a snapshot stands still
    second.restore(tensors, plain)
    for _ in range(4):
        second.run_round()
    for name, tensor in whole.snapshot()[0].items():
        assert torch.equal(tensor, second.snapshot()[0][name]), name
    assert (whole.seconds, whole.meter.links) == (second.seconds, second.meter.links)


def test_the_precisions_agree() -> None:
    single, double = (
        make(MTCD(3, 5, graph=RING), loss=Logistic(), precision=kind) for kind in (torch.float32, torch.float64)
    )
    for _ in range(20):
        single.run_round()
        double.run_round()
    assert single.objective() == pytest.approx(double.objective(), rel=1e-5)


@pytest.mark.parametrize(
    ("algorithm", "complaint"),
    [
        (STCD(graph=Graph("empty")), r"4 pieces, 'a1' cannot be reached from 'a0': a walk without a server needs"),
        (MTCD(4, hops_between_averages=0, graph=Graph("empty"), stay=True), r"a walk without a server needs"),
        (MTCD(4, graph=Graph("empty"), start="each"), r"agent 'a0' has no neighbour .* algorithm.stay = true"),
        (MTCD(2, graph=Graph("empty"), start="each", stay=True), r"agent 'a2' is in a piece .* no token begins"),
        (MTCD(5, graph=RING), r"algorithm.tokens = 5: at most one per agent, and there are 4 agents"),
        (STCD(step_size=1.0, graph=RING), r"step_size = 1 is not below [\d.]+, two over the smoothness [\d.]+"),
    ],
)
def test_graphs_and_steps_that_cannot_work(algorithm: Any, complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        make(algorithm)


@pytest.mark.parametrize("algorithm", [STCD(graph=RING), MTCD(1, hops_between_averages=0, graph=RING)])
def test_one_agent_has_nobody_to_hop_to(algorithm: Any) -> None:
    with pytest.raises(ConfigError, match="the only agent"):
        make(algorithm, agents=1)


def test_the_limit_in_the_message_is_the_limit() -> None:
    with pytest.raises(ConfigError) as caught:
        make(STCD(step_size=1.0, graph=RING))
    found = re.search(r"not below ([\d.]+), .* of the block of 'a(\d)'", str(caught.value))
    assert found is not None
    x = features(make(STCD(graph=RING)))[int(found[2])]
    assert float(found[1]) == pytest.approx(2 / np.linalg.norm(x, 2) ** 2, rel=1e-3)


def test_an_agent_without_features_is_refused() -> None:
    with pytest.raises(ConfigError, match="agent 'a0' has no features"):
        make(STCD(graph=RING), columns=0, block=lambda _: nn.Linear(1, 1))


def test_a_regulariser_that_does_not_fall_apart_is_refused() -> None:
    class Coupled:
        separable = False

    coupled: Any = Coupled()
    with pytest.raises(ModelError, match="regulariser Coupled is not separable"):
        make(STCD(graph=RING), regulariser=coupled)


def test_blocks_and_settings_that_do_not_fit() -> None:
    with pytest.raises(ConfigError, match="is not linear, its smoothness is unknown"):
        make(MTCD(2, graph=RING), block=mlp)
    with pytest.raises(ConfigError, match="averaged scores would not be those of averaged blocks"):
        make(MTCD(2, 1, 0.1, graph=RING, meeting="average"), block=mlp)
    with pytest.raises(ConfigError, match="has outputs at the start"):
        make(STCD(1, 0.1, RING), block=Curved)
    with pytest.raises(ConfigError, match="leave the codecs out"):
        make(STCD(graph=RING), codecs={"share": object()})


def test_federations_that_do_not_fit() -> None:
    simulator = make(STCD(graph=RING))
    data, task = simulator.data, simulator.task
    with pytest.raises(ConfigError, match="needs the labels at every agent, 'a1' alone has them"):
        Simulator(replace(data, label_silo="a1"), task, STCD())
    crowd = replace(data.silos[0], owners=np.arange(12) % 2, clients=2)
    with pytest.raises(ConfigError, match="takes one client per silo, 'a0' has 2"):
        Simulator(replace(data, silos=(crowd, *data.silos[1:])), task, STCD())
    with pytest.raises(ConfigError, match=r"set federation.groups = 1"):
        Simulator(replace(data, groups=np.arange(12) % 2), task, STCD())
    with pytest.raises(ModelError, match=r"set model.fusion = 'sum'"):
        Simulator(data, replace(task, fusion=Head(nn.Linear(4, 1), 0)), STCD())


@pytest.mark.parametrize("algorithm", [STCD(3, graph=RING), MTCD(2, 3, graph=RING, meeting="average")])
def test_a_linear_block_on_images_is_linear(algorithm: Any) -> None:
    rows = make(algorithm, columns=4, regulariser=Regulariser(l1=0.01))
    silos = [
        replace(one, train=one.train.view(-1, 1, 2, 2), test=one.test.view(-1, 1, 2, 2)) for one in rows.data.silos
    ]
    blocks = tuple(nn.Sequential(nn.Flatten(), block) for block in rows.task.blocks)
    data, task = replace(rows.data, silos=tuple(silos)), Task(blocks, Sum(), rows.task.loss, rows.task.regulariser)
    images = Simulator(data, task, algorithm, seed=0, threads=1, precision=torch.float64)
    for _ in range(8):
        rows.run_round()
        images.run_round()
    assert images.objective() == rows.objective() < images.zero_objective()
    assert images.evaluate(["suboptimality"]) == rows.evaluate(["suboptimality"])
    assert torch.equal(*(one.scores([silo.test for silo in one.data.silos]) for one in (images, rows)))


def test_divergence_is_reported() -> None:
    simulator = make(MTCD(2, 50, 40.0, 5, RING), block=mlp)
    complaint = r"no longer finite, training diverged: lower algorithm.step_size \(now 40\)"
    with pytest.raises(TrainingError, match=complaint):
        hear(simulator, 200)


def test_suboptimality_needs_linear_blocks() -> None:
    with pytest.raises(ModelError, match="the block of 'a0' is not linear"):
        make(MTCD(2, 1, 0.1, graph=RING), block=mlp).evaluate(["suboptimality"])
