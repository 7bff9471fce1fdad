"""Small federations, made for engines to be held against each other: every exchange in every form that differs."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from torch import nn

from crosshatch.algorithms.abcd import ABCD
from crosshatch.algorithms.dcpa import DCPA
from crosshatch.algorithms.fedavg import FedAvg
from crosshatch.algorithms.fedbcd import FedBCD
from crosshatch.algorithms.fedsgd import FedSGD
from crosshatch.algorithms.hsgd import HSGD
from crosshatch.algorithms.jfl import JFL
from crosshatch.algorithms.mtcd import MTCD, STCD
from crosshatch.algorithms.tdcd import TDCD
from crosshatch.algorithms.tiered import Tiered
from crosshatch.codecs import AnyCodec, parse_codec
from crosshatch.data.federated import FederatedData, SiloData
from crosshatch.exchanges import Algorithm
from crosshatch.graphs import Graph
from crosshatch.protocol.batches import Ids
from crosshatch.schedules import InverseSqrt
from crosshatch.task.fusion import Head, Sum
from crosshatch.task.losses import ClassWeighted, Logistic, MultiLogistic, SampleWeighted, Squared
from crosshatch.task.optimisers import Adam, Momentum
from crosshatch.task.regulariser import Regulariser
from crosshatch.task.task import Task

_COLUMNS = 3


@dataclass(frozen=True)
class FederationCase:
    """A federation, a task and an algorithm with its codecs, under a name that says what is special about it.

    >>> FederationCase("two silos", make_data((1, 1)), make_task(2), FedBCD(2, 0.1)).codecs
    {}
    """

    name: str
    data: FederatedData
    task: Task
    algorithm: Algorithm
    codecs: Mapping[str, AnyCodec] = field(default_factory=dict)
    seed: int = 11


def make_data(
    clients: Sequence[int],
    *,
    samples: int = 20,
    held: int | None = None,
    groups: Sequence[int] = (),
    shape: tuple[int, ...] = (),
    branches: tuple[int, ...] = (),
) -> FederatedData:
    """Binary labels, silos of three columns each; samples are dealt to the clients at random, unevenly.

    With `groups`, how many samples each has, `clients` are those of every group.
    """
    rng = np.random.default_rng(17)
    sizes = list(groups) or [samples]
    silos = []
    for j, count in enumerate(clients):
        owners = np.concatenate([_dealt(rng, size, count) + g * count for g, size in enumerate(sizes)])
        x = torch.as_tensor(rng.normal(size=(sum(sizes), _COLUMNS)))
        name = f"silo{j}"
        silos.append(SiloData(name, x, x[:2], ("a", "b", "c"), owners, count * len(sizes)))
    y = torch.as_tensor(rng.integers(0, 2, sum(sizes)), dtype=torch.float64)
    return FederatedData(
        tuple(silos), y, y[:2], "binary", 2, None if held is None else f"silo{held}",
        np.repeat(np.arange(len(sizes)), sizes) if groups else None, shape, branches,
    )  # fmt: skip


def _dealt(rng: np.random.Generator, samples: int, clients: int) -> Ids:
    """Every client gets one sample at least, the rest fall where they may."""
    owners = np.concatenate([np.arange(clients), rng.integers(0, clients, samples - clients)])
    return rng.permutation(owners).astype(np.int64)


def make_task(silos: int, *, holder: int | None = None, block: Callable[[int], nn.Module] | None = None) -> Task:
    """A linear block and small networks in turn, added up, or under a head that one silo holds."""
    width = 1 if holder is None else 2
    with torch.random.fork_rng():
        torch.manual_seed(5)
        blocks = tuple((block or (lambda j: _block(j, width)))(j) for j in range(silos))
        head = nn.Sequential(nn.Linear(silos * width, 3), nn.Tanh(), nn.Linear(3, 1))
    fusion = Sum() if holder is None else Head(head, holder)
    regulariser = Regulariser(l2=0.01, penalise_bias=holder is None)
    return Task(blocks, fusion, Logistic(), regulariser, tuple(f"silo{j}" for j in range(silos)))


def _block(number: int, width: int) -> nn.Module:
    if number % 2 == 0:
        return nn.Linear(_COLUMNS, width)
    return nn.Sequential(nn.Linear(_COLUMNS, 3), nn.Tanh(), nn.Linear(3, width))


def _random(number: int) -> nn.Module:  # noqa: ARG001
    return nn.Sequential(nn.Linear(_COLUMNS, 4), nn.Dropout(0.5), nn.Linear(4, 1))


def _partly_trained(number: int) -> nn.Module:
    block = nn.Sequential(nn.Linear(_COLUMNS, 3 + number), nn.Tanh(), nn.Linear(3 + number, 1))
    block[0].requires_grad_(False)
    return block


def _case(
    name: str, data: FederatedData, algorithm: Algorithm, *, holder: int | None = None, **codecs: str
) -> FederationCase:
    coded = {exchange: parse_codec(text) for exchange, text in codecs.items()}
    return FederationCase(name, data, make_task(len(data.silos), holder=holder), algorithm, coded)


def vertical_cases() -> tuple[FederationCase, ...]:
    alone, two, three = make_data((1, 1, 1)), make_data((2, 4)), make_data((2, 5, 3))
    held, held_three, held_alone = make_data((3, 2), held=0), make_data((2, 5, 3), held=1), make_data((1, 1, 1), held=1)
    hospitals = make_data((1, 5), groups=(12, 8))
    regions = make_data((1, 3), groups=(6, 8, 5, 7), shape=(2, 2))
    branched, eta = make_data((5, 8), branches=(2, 2)), InverseSqrt(0.3)
    return (
        _case("FedSGD", alone, FedSGD(eta, 8)),
        _case("FedBCD", alone, FedBCD(3, eta, 8)),
        _case("FedBCD, a head and a proximal term", alone, FedBCD(3, eta, 8, proximal=0.5), holder=2),
        _case("FedBCD in turn", alone, FedBCD(3, eta, 8, order="sequential")),
        _case("FedBCD in turn, a head", alone, FedBCD(2, eta, 8, order="sequential"), holder=1),
        _case("FedBCD, labels held", held_alone, FedBCD(3, eta, 8)),
        _case("FedBCD in turn, labels held", make_data((1, 1, 1), held=0), FedBCD(3, eta, 8, order="sequential")),
        _case("FedBCD, labels held, continued", held_alone, FedBCD(3, eta, 8, derivatives="continued")),
        _case("FedBCD in turn, labels held, continued", make_data((1, 1, 1), held=0),
              FedBCD(3, eta, 8, order="sequential", proximal=0.5, derivatives="continued")),
        _case("ABCD", alone, ABCD(3, eta, 8, "silos", window=1)),
        _case("ABCD, a window and a share of the silos", alone, ABCD(5, eta, 8, "0.5 silos", window=3)),
        _case("ABCD, a head", alone, ABCD(3, eta, 8, 2.5, window=2), holder=1),
        _case("ABCD, labels held", held_alone, ABCD(3, eta, 8, "silos", window=2)),
        _case("ABCD, clients", three, ABCD(4, eta, 6, "silos", window=3, weights="at_work")),
        _case("ABCD, clients and a head", three, ABCD(4, eta, 6, "silos", window=3), holder=2),
        _case("ABCD, clients, labels held", held_three, ABCD(4, eta, 6, "silos", window=3, weights="samples")),
        _case("ABCD, clients, coded", held_three, ABCD(3, eta, 6, "silos", window=2), share="ef(topk(0.5))",
              derivatives="randomk(0.5)", average="half"),
        _case("ABCD, clients, a coded head", three, ABCD(3, eta, 6, 2.5, window=2), holder=1, head="ef(topk(0.5))"),
        _case("ABCD in groups", hospitals, ABCD(2, eta, 4, "silos", window=2, global_steps=4)),
        *_label_cases(),
        _case("FedAvg", make_data((5,)), FedAvg(3, eta, 6)),
        _case("TDCD", two, TDCD(3, eta, 6)),
        _case("TDCD, all samples", two, TDCD(2, eta)),
        _case("TDCD, fresh batches", two, TDCD(3, eta, 5, batches="fresh")),
        _case("TDCD, three silos", three, TDCD(3, eta, 6)),
        _case("TDCD, a head", three, TDCD(2, eta, 6), holder=0),
        _case("TDCD, labels held, each step", held, TDCD(3, eta, 6)),
        _case("TDCD, labels held, each step, three silos, fresh", held_three, TDCD(2, eta, 5, batches="fresh")),
        _case("TDCD, labels held, each step, a head", held_three, TDCD(2, eta, 6), holder=1),
        _case("TDCD, labels held, each round", held, TDCD(3, eta, 6, derivatives="each_round")),
        _case("TDCD, labels held, continued", held_three, TDCD(3, eta, 6, derivatives="continued", weights="samples")),
        _case("TDCD, labels held, continued, fresh", held, TDCD(3, eta, 5, batches="fresh", derivatives="continued")),
        _case("TDCD in turn", three, TDCD(3, eta, 6, order="sequential", weights="at_work")),
        _case("TDCD in turn, fresh batches", three, TDCD(2, eta, 5, batches="fresh", order="sequential")),
        _case("TDCD in turn, labels held, each step", held_three, TDCD(2, eta, 6, order="sequential")),
        _case("TDCD in turn, labels held, each round", held, TDCD(3, eta, 6, "reused", "each_round", "sequential")),
        _case("TDCD in turn, labels held, continued", held_three, TDCD(3, eta, 6, "reused", "continued", "sequential")),
        _case("TDCD in turn, coded", three, TDCD(2, eta, 6, order="sequential"), share="ef(topk(0.5))",
              broadcast="half", average="ef(topk(0.5), accumulate)"),
        _case("TDCD in turn, labels held and coded", held_three, TDCD(2, eta, 6, order="sequential"),
              share="randomk(0.5)", derivatives="ef(topk(0.5))"),
        replace(_case("TDCD, partly trained", two, TDCD(2, eta, 6)), task=make_task(2, block=_partly_trained)),
        replace(_case("TDCD, random blocks", two, TDCD(2, eta, 6)), task=make_task(2, block=_random)),
        _case("TDCD, error feedback on share", two, TDCD(3, eta, 6), share="ef(topk(0.5))"),
        _case("TDCD, error feedback where clients miss messages", three, TDCD(2, eta, 4), holder=1,
              broadcast="ef(topk(0.5))", head="ef(topk(0.5))"),
        _case("TDCD, every exchange coded", three, TDCD(2, eta, 6), holder=2,
              share="randomk(0.5)", head="half", broadcast="half", average="ef(topk(0.5), accumulate)"),
        _case("TDCD, labels held and coded", held_three, TDCD(2, eta, 6), share="randomk(0.5)",
              derivatives="ef(topk(0.5))"),
        _case("HSGD", hospitals, HSGD(4, 2, eta, 0.5), holder=0),
        _case("HSGD, labels held", make_data((1, 5), groups=(12, 8), held=0), HSGD(4, 2, eta, 0.5), holder=0),
        _case("HSGD, coded", hospitals, HSGD(4, 2, eta, 0.5), holder=0, share="topk(0.5)",
              average_groups="ef(randomk(0.5))"),
        _case("JFL", hospitals, JFL(2, eta, 0.5), holder=0),
        _case("JFL, coded", hospitals, JFL(2, eta, 0.5), holder=0, broadcast="ef(topk(0.5))", head="half"),
        _case("four tiers", regions, Tiered("H(8) H(4) V(2) H(1)", eta, batch_size=3), holder=0),
        _case("branches", branched, Tiered("V(4) H(4) H(2) H(1)", eta, batch_size=4, weights="samples")),
        _case("branches, coded", branched, Tiered("V(2) H(2) H(2) H(1)", eta, batch_size=4),
              broadcast="randomk(0.5)", average="ef(topk(0.5))"),
    )  # fmt: skip


def _label_cases() -> tuple[FederationCase, ...]:
    """Classes with weights, which everybody knows, and several labels per sample."""
    weighted, eta = ClassWeighted(Logistic(), (0.7, 2.5)), InverseSqrt(0.2)
    cases = (
        _case("ABCD, clients, labels held, class weights", make_data((2, 5, 3), held=1), ABCD(4, eta, 6, window=2)),
        _case("TDCD, a head, class weights", make_data((2, 5, 3)), TDCD(2, eta, 6), holder=0),
        _case("TDCD, labels held, each step, class weights", make_data((3, 2), held=0), TDCD(3, eta, 6)),
    )
    several = (
        _case("ABCD, clients, labels held, several labels", make_data((2, 5, 3), held=1), ABCD(4, eta, 6, window=2)),
        _case("TDCD, several labels", make_data((2, 4)), TDCD(3, eta, 6)),
    )
    each = (
        _case("FedBCD, labels held, sample weights", make_data((1, 1, 1), held=1), FedBCD(3, eta, 8)),
        _case("ABCD, sample weights", make_data((2, 4)), ABCD(1, eta, 6)),
        _case("TDCD, labels held, each step, a head, sample weights", make_data((2, 5, 3), held=1), TDCD(2, eta, 6),
              holder=1),
    )  # fmt: skip
    return (
        *(_with_sample_weights(case) for case in each),
        *(replace(case, task=replace(case.task, loss=weighted)) for case in cases),
        *(_with_several_labels(case) for case in several),
    )


def _with_sample_weights(case: FederationCase) -> FederationCase:
    data = case.data
    weights = torch.as_tensor(np.random.default_rng(7).uniform(0, 3, len(data.y_train)))
    data = replace(data, y_train=torch.stack([data.y_train, weights], dim=1), weighted=True)
    return replace(case, data=data, task=replace(case.task, loss=SampleWeighted(Logistic(), 3.0)))


def _with_several_labels(case: FederationCase) -> FederationCase:
    y = torch.as_tensor(np.random.default_rng(3).integers(0, 2, (len(case.data.y_train), 3)), dtype=torch.float64)
    task = replace(make_task(len(case.data.silos), block=lambda j: _block(j, 3)), loss=MultiLogistic())
    return replace(case, data=replace(case.data, y_train=y, y_test=y[:2], target="multilabel", classes=3), task=task)


def optimiser_cases() -> tuple[FederationCase, ...]:
    """Local steps with momentum and Adam, their states reset, kept and averaged."""
    alone, three, held = make_data((1, 1, 1)), make_data((2, 5, 3)), make_data((2, 5, 3), held=1)
    hospitals, branched = make_data((1, 5), groups=(12, 8)), make_data((5, 8), branches=(2, 2))
    regions = make_data((1, 3), groups=(6, 8, 5, 7), shape=(2, 2))
    reset, kept, averaged = Adam(), Adam(state="kept"), Adam((0.8, 0.99), 1e-6, "averaged")
    ball, averaged_ball = Momentum(0.8, nesterov=True, state="kept"), Momentum(0.7, state="averaged")
    eta = InverseSqrt(0.05)
    chosen = (
        (_case("FedSGD, Adam kept", alone, FedSGD(eta, 8)), kept),
        (_case("FedBCD, a head and a proximal term, Adam", alone, FedBCD(3, eta, 8, proximal=0.5), holder=2), reset),
        (_case("FedBCD in turn, momentum averaged", alone, FedBCD(3, eta, 8, order="sequential")), averaged_ball),
        (_case("ABCD, Adam averaged", alone, ABCD(5, eta, 8, "0.5 silos", window=3)), averaged),
        (_case("ABCD, clients, labels held, Adam averaged", held, ABCD(4, eta, 6, window=3)), averaged),
        (_case("ABCD in groups, momentum", hospitals, ABCD(2, eta, 4, window=2, global_steps=4)), averaged_ball),
        (_case("FedAvg, Adam reset", make_data((5,)), FedAvg(3, eta, 6)), reset),
        (_case("FedAvg, Adam kept", make_data((5,)), FedAvg(3, eta, 6)), kept),
        (_case("FedAvg, Adam averaged", make_data((5,)), FedAvg(3, eta, 6)), averaged),
        (_case("TDCD, fresh batches, Adam averaged", three, TDCD(3, eta, 5, batches="fresh")), averaged),
        (_case("TDCD, a head, momentum kept", three, TDCD(2, eta, 6), holder=0), ball),
        (_case("TDCD, labels held, each step, Adam", held, TDCD(3, eta, 6)), reset),
        (_case("TDCD, coded, momentum kept", three, TDCD(2, eta, 6), average="ef(topk(0.5))", broadcast="half"), ball),
        (_case("HSGD, Adam averaged", hospitals, HSGD(4, 2, eta, 0.5), holder=0), averaged),
        (_case("HSGD, one step, momentum kept", hospitals, HSGD(1, 1, eta, 0.5), holder=0), ball),
        (_case("JFL, Adam averaged", hospitals, JFL(2, eta, 0.5), holder=0), averaged),
        (_case("four tiers, Adam averaged", regions, Tiered("H(8) H(4) V(2) H(1)", eta, 3), holder=0), averaged),
        (_case("branches, Adam kept", branched, Tiered("V(4) H(4) H(2) H(1)", eta, 4)), kept),
        (replace(_case("TDCD, partly trained, Adam averaged", three, TDCD(2, eta, 6)),
                 task=make_task(3, block=_partly_trained)), averaged),
        (replace(_case("TDCD, random blocks, Adam kept", three, TDCD(2, eta, 6)),
                 task=make_task(3, block=_random)), kept),
        (replace(_case("TDCD, random blocks, Adam, labels held, coded", make_data((2, 2), held=0), TDCD(2, eta, 4),
                       share="randomk(0.5)", derivatives="half", broadcast="quantise(64)", average="topk(0.5) | half"),
                 task=make_task(2, block=_random)), reset),
    )  # fmt: skip
    return tuple(replace(case, task=replace(case.task, optimiser=optimiser)) for case, optimiser in chosen)


def graph_cases() -> tuple[FederationCase, ...]:
    """Agents on a graph, with linear blocks unless their name says otherwise."""
    data = make_data((1,) * 5, samples=12)
    ring, whole = Graph("ring"), Graph("complete")
    cases = (
        _case("STCD", data, STCD(3, "auto", ring)),
        _case("MTCD", data, MTCD(3, 2, "auto", 4, ring)),
        _case("MTCD, tokens that meet", data, MTCD(3, 2, InverseSqrt(0.02), 0, whole, stay=True, meeting="average")),
        _case("DCPA", data, DCPA(graph=ring)),
        _case("DCPA, squared loss", replace(data, target="regression"), DCPA(graph=Graph("path"))),
    )
    linear = make_task(5, block=lambda _: nn.Linear(_COLUMNS, 1))
    shrunk = replace(linear, regulariser=Regulariser(l2=0.01, l1=0.02, penalise_bias=False))
    tasks = (linear, shrunk, linear, shrunk, replace(shrunk, loss=Squared()))
    networks = _case("MTCD, small networks", data, MTCD(3, 2, 0.02, 4, ring))
    return (*(replace(case, task=task) for case, task in zip(cases, tasks, strict=True)), networks)


def all_cases() -> tuple[FederationCase, ...]:
    return (*vertical_cases(), *optimiser_cases(), *graph_cases())
