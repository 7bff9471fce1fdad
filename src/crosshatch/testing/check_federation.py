"""Hold any engine against the parties themselves: `check_federation(make_engine)`.

An engine runs an algorithm's text its own way; the engine of `crosshatch.testing.parties` runs it as plainly as it can
be. Both must reach the same weights and send the same messages, to the byte.
"""

import copy
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor, nn

from crosshatch.algorithms.dcpa import DCPA
from crosshatch.algorithms.fedbcd import FedBCD
from crosshatch.algorithms.hsgd import HSGD
from crosshatch.algorithms.mtcd import MTCD
from crosshatch.algorithms.tdcd import TDCD
from crosshatch.algorithms.tiered import Tiered
from crosshatch.codecs import AnyCodec, parse_codec
from crosshatch.data.federated import FederatedData
from crosshatch.errors import CrosshatchError
from crosshatch.exchanges import with_division
from crosshatch.graphs import Graph
from crosshatch.meter import Meter
from crosshatch.task.fusion import Sum
from crosshatch.task.losses import Squared
from crosshatch.task.optimisers import Adam, Momentum
from crosshatch.task.regulariser import Regulariser
from crosshatch.task.task import Task
from crosshatch.testing.federations import FederationCase, all_cases, make_data, make_task
from crosshatch.testing.parties.engine import PartyByParty
from crosshatch.testing.transfer_federations import transfer_cases

TOLERANCE = 1e-12


class Engine(Protocol):
    """What is asked of an engine."""

    @property
    def weights(self) -> Sequence[Tensor]:
        """The model, one flat vector per silo."""

    @property
    def meter(self) -> Meter:
        """Bytes and messages so far, by link and by exchange."""

    def run_round(self) -> None: ...


@runtime_checkable
class Resumable(Protocol):
    """An engine that can go back to where it was."""

    def snapshot(self) -> tuple[Any, ...]:
        """Everything a later round depends on."""

    def restore(self, *state: Any) -> None: ...


class MakeEngine(Protocol):
    """Puts an engine together, in double precision."""

    def __call__(
        self, data: FederatedData, task: Task, algorithm: Any, *, seed: int, codecs: Mapping[str, AnyCodec]
    ) -> Engine:
        """An engine before its first round, or a CrosshatchError."""


def check_federation(
    make_engine: MakeEngine,
    *,
    cases: Sequence[FederationCase] | None = None,
    rounds: int = 10,
    tolerance: float = TOLERANCE,
) -> float:
    """Do all checks below on every case; returns the largest difference of any weight.

    An AssertionError says what is wrong.

    >>> cases = [case for case in all_cases() if case.name == "FedBCD"]
    >>> check_federation(PartyByParty, cases=cases, rounds=1)
    0.0
    """
    chosen = (*all_cases(), *transfer_cases()) if cases is None else cases
    worst = 0.0
    for case in chosen:
        case = replace(case, algorithm=with_division(case.algorithm))  # one division for all engines
        worst = max(worst, check_rounds(make_engine, case, rounds=rounds, tolerance=tolerance))
        check_purity(make_engine, case)
    check_refusals(make_engine)
    return worst


def check_rounds(make_engine: MakeEngine, case: FederationCase, *, rounds: int, tolerance: float = TOLERANCE) -> float:
    """After every round the weights agree, and so do bytes and messages by link and exchange, exactly."""
    ours, theirs = _make(make_engine, case), _make(PartyByParty, case)
    worst = 0.0
    for r in range(rounds):
        ours.run_round()
        theirs.run_round()
        pairs = zip(ours.weights, theirs.weights, strict=True)
        off = [float((mine - wanted).abs().max()) for mine, wanted in pairs]
        worst = max(worst, *off)
        at = f"{case.name}: after round {r}"
        assert worst <= tolerance, f"{at} the block of silo {off.index(max(off))} is {worst:.1e} off"
        for what, mine, wanted in (
            ("link", ours.meter.links, theirs.meter.links),
            ("exchange", ours.meter.exchanges, theirs.meter.exchanges),
        ):
            for name in sorted(mine.keys() | wanted.keys()):
                found, due = mine.get(name, [0, 0]), wanted.get(name, [0, 0])
                assert list(found) == list(due), f"{at} {what} '{name}' has [bytes, messages] {found}, not {due}"
    return worst


def check_purity(make_engine: MakeEngine, case: FederationCase, *, rounds: int = 2) -> None:
    """Engines made alike do the same, bit for bit, whatever torch's own generator says, and leave the task alone.

    An engine with `snapshot` and `restore` makes the same round twice from the same state.
    """
    before = [weights.clone() for weights in case.task.initial()]
    ends = []
    for seed in (1, 2):
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            engine = _make(make_engine, case)
            for _ in range(rounds):
                engine.run_round()
        ends.append(([weights.clone() for weights in engine.weights], engine.meter))
    (one, meter), (other, again) = ends
    assert all(map(torch.equal, one, other)), f"{case.name}: two equal runs differ"
    assert meter == again, f"{case.name}: two equal runs count differently"
    if isinstance(engine, Resumable):
        state, ends = copy.deepcopy(engine.snapshot()), []
        for _ in range(2):
            engine.run_round()
            ends.append(([weights.clone() for weights in engine.weights], copy.deepcopy(engine.meter)))
            engine.restore(*copy.deepcopy(state))
        same = all(map(torch.equal, ends[0][0], ends[1][0])) and ends[0][1] == ends[1][1]
        assert same, f"{case.name}: a round from the same state differs the second time"
    assert all(map(torch.equal, before, case.task.initial())), f"{case.name}: the task's own modules were changed"


def refused_cases() -> tuple[FederationCase, ...]:
    """Federations that no engine may begin with."""
    several, alone = make_data((2, 3)), make_data((1, 1))
    groups = make_data((1, 3), groups=(6, 8))
    spoilt = replace(alone, y_train=alone.y_train * float("nan"))
    narrow = Task((nn.Linear(3, 1), nn.Linear(2, 1)), Sum(), make_task(2).loss, silos=("silo0", "silo1"))
    linear = make_task(2, block=lambda _: nn.Linear(3, 1))
    plain = FederationCase("", alone, make_task(2), FedBCD(2, 0.1))
    return (
        replace(plain, name="several clients per silo", data=several),
        replace(plain, name="groups without a tier above", data=groups, algorithm=TDCD(2, 0.1)),
        replace(plain, name="groups that do not nest", data=groups, algorithm=Tiered("H(4) H(2) V(2) H(2)", 0.1)),
        replace(plain, name="branches without tiers", data=make_data((4, 4), branches=(2,)), algorithm=TDCD(2, 0.1)),
        replace(
            plain, name="labels and head apart", data=make_data((1, 3), held=1), task=make_task(2, holder=0),
            algorithm=HSGD(2, 2, 0.1),
        ),
        replace(
            plain, name="derivatives that go on behind a head", data=make_data((1, 1), held=1),
            task=make_task(2, holder=1), algorithm=FedBCD(2, 0.1, derivatives="continued"),
        ),
        replace(
            plain, name="turns with a head per client", data=several, task=make_task(2, holder=0),
            algorithm=TDCD(2, 0.1, order="sequential"),
        ),
        replace(plain, name="a block that does not fit", task=narrow),
        replace(plain, name="labels of another kind", task=replace(make_task(2), loss=Squared()), data=spoilt),
        replace(plain, name="an exchange that is not there", codecs={"shares": parse_codec("half")}),
        replace(plain, name="no seed", seed=-1),
        replace(plain, name="an agent with clients", data=several, algorithm=MTCD(2)),
        replace(plain, name="more tokens than agents", task=linear, algorithm=MTCD(3)),
        replace(plain, name="a head among agents", task=make_task(2, holder=0), algorithm=DCPA()),
        replace(plain, name="an optimiser among agents", task=replace(linear, optimiser=Momentum()), algorithm=MTCD(2)),
        replace(plain, name="Adam and l1", task=replace(linear, optimiser=Adam(), regulariser=Regulariser(l1=0.1))),
        replace(
            plain, name="averaged moments and a codec", data=several, algorithm=TDCD(2, 0.1),
            task=replace(linear, optimiser=Adam(state="averaged")), codecs={"average": parse_codec("half")},
        ),
        replace(plain, name="agents out of reach", task=linear, algorithm=DCPA(graph=Graph("empty"))),
    )  # fmt: skip


def check_refusals(make_engine: MakeEngine) -> None:
    """Bad arguments get the error, and the line, that every party would give."""
    for case in refused_cases():
        found, wanted = _refusal(make_engine, case), _refusal(PartyByParty, case)
        assert wanted is not None, f"{case.name}: a party would begin"
        assert found is not None, f"{case.name}: not refused, a party says: {wanted}"
        said = f"{case.name}: refused with {type(found).__name__}: {found}"
        assert (type(found), str(found)) == (type(wanted), str(wanted)), f"{said}; a party says: {wanted}"


def _make(make_engine: MakeEngine, case: FederationCase) -> Engine:
    return make_engine(case.data, case.task, case.algorithm, seed=case.seed, codecs=case.codecs)


def _refusal(make_engine: MakeEngine, case: FederationCase) -> CrosshatchError | None:
    try:
        _make(make_engine, case)
    except CrosshatchError as error:
        return error
    return None
