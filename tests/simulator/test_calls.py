"""What a step uses follows from the call, and every message has a key of its own."""

from __future__ import annotations

import copy
from collections import Counter
from dataclasses import dataclass, replace

import pytest
import torch
from torch import nn

from crosshatch import wire
from crosshatch.algorithms.fedbcd import FedBCD
from crosshatch.algorithms.hsgd import HSGD
from crosshatch.algorithms.jfl import JFL
from crosshatch.algorithms.tdcd import TDCD
from crosshatch.algorithms.tiered import Tiered
from crosshatch.codecs import AnyCodec, parse_codec
from crosshatch.data.federated import FederatedData, merge_clients
from crosshatch.exchanges import Algorithm, Batch, Blocks, Embeddings, Federation, Frozen, LocalSteps
from crosshatch.network import BandwidthNetwork, ConstantNetwork, Link
from crosshatch.simulator.simulator import Simulator
from crosshatch.task.fusion import Sum
from crosshatch.task.losses import Squared
from crosshatch.task.task import Task
from crosshatch.topology import Topology
from tests.equivalence.hospitals import distance, hospitals, model, simulate
from tests.equivalence.modules import make_block
from tests.simulator.listen import listen
from tests.simulator.message_log import Message, log_messages
from tests.simulator.small import small

ONE = hospitals([24], per_device=3)
HELD = hospitals([24], per_device=3, labels="hospital")


@dataclass(frozen=True)
class FiveSteps:
    """Five local steps whatever `local_steps` says, in one call or in several."""

    local_steps: int
    tiers: str
    calls: tuple[int, ...] = (5,)
    step_size: float = 0.05

    @property
    def topology(self) -> Topology:
        return Topology.parse(self.tiers)

    def run_round(self, fed: Federation[Blocks, Batch, Embeddings, Frozen], blocks: Blocks, r: int) -> Blocks:
        batch = fed.draw_batch(10, round=r)
        blocks = fed.broadcast(blocks, batch)
        frozen = fed.share(fed.embed(blocks, batch), batch)
        for steps in self.calls:
            blocks = fed.descend(blocks, batch, frozen, LocalSteps(steps, self.step_size))
        blocks = fed.average(blocks, batch)
        return fed.average_groups(blocks, round=r) if self.topology.above else blocks


@pytest.mark.parametrize(("data", "tiers"), [(ONE, "V(1) H(1)"), (hospitals([12, 20]), "H(1) V(1) H(1)")])
@pytest.mark.parametrize("fusion", ["sum", "head"])
@pytest.mark.parametrize("calls", [(5,), (1, 4), (1, 1, 1, 1, 1)])
def test_steps_are_those_asked_for_not_those_declared(
    data: FederatedData, tiers: str, fusion: str, calls: tuple[int, ...]
) -> None:
    declared = simulate(data, FiveSteps(5, tiers), rounds=3, fusion=fusion)
    for local_steps in (1, 5):
        ours = simulate(data, FiveSteps(local_steps, tiers, calls), rounds=3, fusion=fusion)
        assert distance(declared, ours) < 1e-13


@dataclass(frozen=True)
class OneByOne(FiveSteps):
    """The same steps, silo after silo in calls of their own, or twice from the same blocks."""

    again: bool = False

    def run_round(self, fed: Federation[Blocks, Batch, Embeddings, Frozen], blocks: Blocks, r: int) -> Blocks:
        batch = fed.draw_batch(10, round=r)
        blocks = fed.broadcast(blocks, batch)
        frozen = fed.share(fed.embed(blocks, batch), batch)
        if self.again:  # the first result is thrown away
            fed.average(fed.descend(blocks, batch, frozen, LocalSteps(1, self.step_size)), batch)
        for silo in (1, 0):
            for steps in self.calls:
                blocks = fed.descend(blocks, batch, frozen, LocalSteps(steps, self.step_size), only=silo)
        blocks = fed.average(blocks, batch)
        return fed.average_groups(blocks, round=r) if self.topology.above else blocks


@pytest.mark.parametrize(("data", "tiers"), [(ONE, "V(1) H(1)"), (hospitals([12, 20]), "H(1) V(1) H(1)")])
@pytest.mark.parametrize("codecs", [{}, {"average": parse_codec("ef(topk(0.5))"), "broadcast": parse_codec("half")}])
@pytest.mark.parametrize("calls", [(5,), (2, 3)])
def test_silos_may_take_their_steps_in_calls_of_their_own(
    data: FederatedData, tiers: str, codecs: dict[str, AnyCodec], calls: tuple[int, ...]
) -> None:
    together = simulate(data, FiveSteps(5, tiers), rounds=3, codecs=codecs)
    for local_steps in (1, 5):
        ours = simulate(data, OneByOne(local_steps, tiers, calls), rounds=3, codecs=codecs)
        assert distance(together, ours) < 1e-13
        assert ours.meter == together.meter


@pytest.mark.parametrize("kind", ["mlp", "gated"])
def test_the_same_blocks_may_descend_twice(kind: str) -> None:
    """A kept forward pass serves one step; a second one computes its own."""
    with torch.random.fork_rng():
        torch.manual_seed(1)
        blocks = tuple(make_block(kind, size, 1) for size in (4, 3))
    runs = []
    for again in (False, True):
        text = OneByOne(1, "V(1) H(1)", (1,), again=again)
        runs.append(Simulator(ONE, model_of(blocks), text, precision=torch.float64, threads=1))
        for _ in range(3):
            runs[-1].run_round()
    assert distance(*runs) < 1e-13


def test_a_simulator_that_was_used_goes_back_to_a_snapshot() -> None:
    """Codecs forget what they sent after it."""
    codecs = {"broadcast": parse_codec("ef(topk(0.3))"), "share": parse_codec("ef(topk(0.3))")}
    simulator = simulate(ONE, TDCD(2, 0.05, 5), rounds=0, codecs=codecs)
    begin = copy.deepcopy(simulator.snapshot())
    ends = []
    for _ in range(2):
        for _ in range(4):
            simulator.run_round()
        ends.append((torch.cat(simulator.weights).clone(), simulator.meter.bytes))
        simulator.restore(*copy.deepcopy(begin))
    assert torch.equal(ends[0][0], ends[1][0])
    assert ends[0][1] == ends[1][1]


def log_of(data: FederatedData, algorithm: Algorithm, *, fusion: str = "head", **options: object) -> list[Message]:
    simulator = Simulator(data, model(fusion), algorithm, precision=torch.float64, threads=1, **options)  # type: ignore[arg-type]
    messages = log_messages(simulator)
    for _ in range(3):
        simulator.run_round()
    lengths = [
        len(wire.encode("0badcafe", r, exchange, tuple(torch.zeros(s, dtype=d) for d, s in specs), use=use))
        for _, _, r, exchange, use, specs in messages
    ]
    assert (sum(lengths), len(lengths)) == (simulator.meter.bytes, simulator.meter.messages)
    return messages


@pytest.mark.parametrize(
    ("data", "algorithm"),
    [
        (merge_clients(HELD), FedBCD(2, 0.05, 10, order="sequential")),
        (merge_clients(ONE), FedBCD(2, 0.05, 10, order="sequential")),
        (HELD, TDCD(3, 0.05, 10)),
        (HELD, TDCD(3, 0.05, 10, batches="fresh")),
        (hospitals([6, 8, 4, 6], shape=(2, 2)), Tiered("H(4) H(2) V(2) H(2)", 0.05)),
        (replace(ONE, branches=(2, 2)), Tiered("V(4) H(4) H(2) H(1)", 0.05)),
        (hospitals([8, 12]), HSGD(4, 2, 0.05, 0.5)),
        (hospitals([8, 12]), JFL(1, 0.05, 0.5)),
    ],
    ids=["in turn, held", "in turn", "each step", "each step, fresh", "four tiers", "branches", "hsgd", "jfl"],
)
def test_no_two_messages_between_two_parties_have_one_key(data: FederatedData, algorithm: Algorithm) -> None:
    """(round, exchange, use) with the two ends; the header has all of it but the ends."""
    keys = Counter(message[:5] for message in log_of(data, algorithm))
    assert max(keys.values()) == 1


@pytest.mark.parametrize("silos", [3, 4])
def test_turns_before_the_labels_holder_have_keys_of_their_own(silos: int) -> None:
    """Every turn asks the holder anew: 2K messages and more between the same parties."""
    case = small(clients=(1,) * silos, label_silo="abcd"[silos - 1])
    messages = listen(case, FedBCD(2, 0.1, order="sequential"), rounds=2).messages
    assert max(Counter(message[:5] for message in messages).values()) == 1


def test_uses_of_an_exchange_are_counted_anew_in_every_round() -> None:
    uses = {(r, exchange): set[int]() for r in range(3) for exchange in ("share", "derivatives", "broadcast")}
    for _, _, r, exchange, use, _ in log_of(HELD, TDCD(3, 0.05, 10)):
        uses.setdefault((r, exchange), set()).add(use)
    assert all(found == ({0, 1, 2} if name in ("share", "derivatives") else {0}) for (_, name), found in uses.items())


@pytest.mark.parametrize("devices", [2, 10])
def test_a_hospital_trains_the_models_of_its_pairs_one_after_the_other(devices: int) -> None:
    """Three steps of a second each for every device at work; the devices themselves work side by side."""
    network = ConstantNetwork(t_comm=0.0, t_comp=1.0)
    ours = simulate(hospitals([20]), JFL(3, 0.05, devices / 20), rounds=2, network=network)
    assert ours.seconds == pytest.approx(2 * 3 * devices)
    assert simulate(hospitals([20]), HSGD(3, 3, 0.05, devices / 20), rounds=2, network=network).seconds == 6


def test_devices_of_pairs_talk_to_the_server_themselves() -> None:
    """JFL's blocks go between device and server, its embeddings between device and hospital."""
    meter = simulate(hospitals([20, 12]), JFL(1, 0.05, 0.5), rounds=2).meter
    devices = 2 * (10 + 6)
    assert {link: messages for link, (_, messages) in meter.links.items()} == {
        "client-server up": devices,
        "client-server down": devices,
        "client-hub up": devices,
        "client-hub down": devices,
        "group-server up": devices,
        "group-server down": devices,
    }
    for slower in ({"client-server": Link(latency=1.0)}, {"client-hub": Link(latency=1.0)}):
        timed = simulate(hospitals([20, 12]), JFL(1, 0.05), rounds=1, network=BandwidthNetwork(links=slower))
        assert timed.seconds == (
            2 if "client-server" in slower else 4
        )  # the server is reached by the device's own line


def test_numbers_that_are_not_trained_are_not_sent() -> None:
    """A frozen first layer of 3 x 3 and 3: it stays as it is everywhere and costs nothing, coded or not."""
    blocks = (nn.Linear(4, 1), nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 1)))
    for parameter in blocks[1][0].parameters():
        parameter.requires_grad_(False)
    codecs: tuple[dict[str, AnyCodec], ...] = (
        {},
        {
            "broadcast": parse_codec("quantise(64)"),
            "average": parse_codec("ef(topk(0.5))"),
            "average_groups": parse_codec("half"),
        },
    )
    before = model_of(blocks).to("cpu", torch.float64).initial()[1]
    for given in codecs:
        simulator = Simulator(
            hospitals([8, 12]), model_of(blocks), HSGD(2, 2, 0.05), precision=torch.float64, threads=1, codecs=given
        )
        simulator.run_round()
        assert torch.equal(simulator.weights[1][:12], before[:12])
        assert not torch.equal(simulator.weights[1][12:], before[12:])
        if not given:
            block = len(wire.encode("0badcafe", 0, "average", (torch.zeros(4, dtype=torch.float64),)))
            assert simulator.meter.exchanges["average"] == [20 * block, 20]


def model_of(blocks: tuple[nn.Module, ...]) -> Task:
    return Task(blocks, Sum(), Squared(), silos=("hospital", "devices"))


@dataclass(frozen=True)
class NeverAveraged(FiveSteps):
    """Local steps that no hub hears of."""

    def run_round(self, fed: Federation[Blocks, Batch, Embeddings, Frozen], blocks: Blocks, r: int) -> Blocks:
        batch = fed.draw_batch(10, round=r)
        blocks = fed.broadcast(blocks, batch)
        frozen = fed.share(fed.embed(blocks, batch), batch)
        return fed.descend(blocks, batch, frozen, LocalSteps(2, self.step_size))


@pytest.mark.parametrize(("data", "tiers"), [(ONE, "V(1) H(1)"), (hospitals([12, 20]), "H(1) V(1) H(1)")])
def test_between_rounds_there_is_what_the_hubs_hold(data: FederatedData, tiers: str) -> None:
    """A silo that is one party, as a hospital, has its block at its hub at once."""
    before, after = (simulate(data, NeverAveraged(1, tiers), rounds=rounds) for rounds in (0, 3))
    at_once = data.groups is not None
    assert [torch.equal(a, b) for a, b in zip(before.weights, after.weights, strict=True)] == [not at_once, True]
    assert not any(blocks.moved for blocks in after.state.blocks)  # type: ignore[union-attr]


@dataclass(frozen=True)
class LastSiloFirst(FiveSteps):
    """The silos step in separate calls, in an order of their own."""

    order: tuple[int, ...] = (1, 0)

    def run_round(self, fed: Federation[Blocks, Batch, Embeddings, Frozen], blocks: Blocks, r: int) -> Blocks:
        batch = fed.draw_batch(10, round=r)
        blocks = fed.broadcast(blocks, batch)
        frozen = fed.share(fed.embed(blocks, batch), batch)
        for silo in self.order:
            blocks = fed.descend(blocks, batch, frozen, LocalSteps(2, self.step_size), only=silo)
        return fed.average(blocks, batch)


def test_clocks_do_not_depend_on_the_order_of_the_silos_steps() -> None:
    network = BandwidthNetwork(links={"client-hub": Link(0.5, 1e-3, 1e-3)}, step_seconds=1.0, slow={"devices/1": 7.0})
    first, second = (
        simulate(ONE, LastSiloFirst(1, "V(1) H(1)", order=order), rounds=2, network=network)
        for order in ((0, 1), (1, 0))
    )
    assert distance(first, second) < 1e-13
    assert first.seconds == second.seconds
