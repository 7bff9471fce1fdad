"""The simulator against the parties themselves, and the check against engines that are wrong."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor

from crosshatch.codecs import AnyCodec
from crosshatch.data.federated import FederatedData
from crosshatch.errors import ConfigError
from crosshatch.meter import Meter
from crosshatch.simulator.simulator import Simulator
from crosshatch.task.task import Task
from crosshatch.testing.check_federation import (
    check_federation,
    check_purity,
    check_refusals,
    check_rounds,
    refused_cases,
)
from crosshatch.testing.federations import FederationCase, all_cases
from crosshatch.testing.parties.engine import PartyByParty
from crosshatch.testing.transfer_federations import transfer_cases

CASES = {case.name: case for case in all_cases()}
FEW = [CASES[name] for name in ("FedBCD", "TDCD, labels held, each step", "HSGD")]


def simulator(
    data: FederatedData, task: Task, algorithm: Any, *, seed: int, codecs: Mapping[str, AnyCodec]
) -> Simulator:
    return Simulator(data, task, algorithm, seed=seed, codecs=codecs, precision=torch.float64, threads=1)


def test_cases_have_names_of_their_own() -> None:
    assert len(CASES) == len(all_cases()) == 87


# The papers' settings; what else differs between engines shows within a few rounds.
LONG = (
    "FedBCD", "FedBCD in turn", "FedBCD, labels held", "FedBCD in turn, labels held", "TDCD", "TDCD, fresh batches",
    "TDCD, three silos", "TDCD, labels held, each step", "TDCD, labels held, each round", "HSGD", "four tiers",
    "TDCD, error feedback on share", "MTCD", "DCPA",
)  # fmt: skip


@pytest.mark.parametrize("name", LONG)
def test_simulator_agrees_with_the_parties_for_fifty_rounds(name: str) -> None:
    assert check_rounds(simulator, CASES[name], rounds=50) < 1e-12


@pytest.mark.parametrize("name", sorted(CASES.keys() - set(LONG)))
def test_simulator_agrees_with_the_parties(name: str) -> None:
    assert check_rounds(simulator, CASES[name], rounds=12) < 1e-12


@pytest.mark.parametrize("strategy", ["loop", "stacked"])
def test_every_strategy_agrees(strategy: Any) -> None:
    def make(
        data: FederatedData, task: Task, algorithm: Any, *, seed: int, codecs: Mapping[str, AnyCodec]
    ) -> Simulator:
        return Simulator(
            data, task, algorithm, seed=seed, codecs=codecs, precision=torch.float64, threads=1, strategy=strategy
        )

    for case in FEW:
        check_rounds(make, case, rounds=5)


def test_simulator_passes() -> None:
    assert check_federation(simulator, rounds=1) < 1e-13


def test_parties_pass() -> None:
    assert check_federation(PartyByParty, cases=FEW, rounds=2) == 0


@pytest.mark.parametrize("name", sorted(CASES))
def test_steps_through_local_agree_with_plain_ones(name: str) -> None:
    """As the processes of the runtime take them."""
    solved = partial(PartyByParty, steps="solved")
    assert check_rounds(solved, CASES[name], rounds=4) < 1e-13
    check_purity(solved, CASES[name])


def test_steps_through_local_agree_in_transfer_tasks() -> None:
    assert check_federation(partial(PartyByParty, steps="solved"), cases=transfer_cases(), rounds=2) < 1e-13


class Wrapped:
    """An engine with one thing wrong."""

    def __init__(self, *given: Any, **options: Any) -> None:
        self.inner = PartyByParty(*given, **options)

    @property
    def weights(self) -> tuple[Tensor, ...]:
        return self.inner.weights

    @property
    def meter(self) -> Meter:
        return self.inner.meter

    def run_round(self) -> None:
        self.inner.run_round()


class OffABit(Wrapped):
    @property
    def weights(self) -> tuple[Tensor, ...]:
        first, *rest = self.inner.weights
        return (first + 1e-11 * (self.inner.round > 1), *rest)


class OneByteMore(Wrapped):
    @property
    def meter(self) -> Meter:
        found = self.inner.meter
        found.links["client-hub up"][0] += 1
        return found


class OneMessageMore(Wrapped):
    @property
    def meter(self) -> Meter:
        found = self.inner.meter
        found.exchanges.setdefault("gossip", [0, 0])[1] += 1
        return found


class ByChance(Wrapped):
    @property
    def weights(self) -> tuple[Tensor, ...]:
        return tuple(weights + torch.rand(()) * 1e-14 for weights in self.inner.weights)


class Forgetful(Wrapped):
    """Goes on from a snapshot, but counts its rounds anew."""

    def snapshot(self) -> tuple[Any, ...]:
        return ({name: party.blocks for name, party in self.inner.parties.items()},)

    def restore(self, blocks: Any) -> None:
        for name, party in self.inner.parties.items():
            party.blocks = blocks[name]


class Careless(Wrapped):
    def __init__(self, *given: Any, **options: Any) -> None:
        super().__init__(*given, **options)
        with torch.no_grad():
            next(given[1].blocks[0].parameters()).mul_(1.0001)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (OffABit, r"TDCD: after round 1 the block of silo 0 is 1\.0e-11 off"),
        (OneByteMore, r"TDCD: after round 0 link 'client-hub up' has \[bytes, messages\] \[\d+, 12\], not \[\d+, 12\]"),
        (OneMessageMore, r"TDCD: after round 0 exchange 'gossip' has \[bytes, messages\] \[0, 1\], not \[0, 0\]"),
    ],
)
def test_rounds_that_differ_are_found(wrong: type[Wrapped], said: str) -> None:
    with pytest.raises(AssertionError, match=said):
        check_rounds(wrong, CASES["TDCD"], rounds=3)


def test_chance_is_found() -> None:
    with pytest.raises(AssertionError, match="TDCD: two equal runs differ"):
        check_purity(ByChance, CASES["TDCD"])


def test_a_state_that_is_not_whole_is_found() -> None:
    with pytest.raises(AssertionError, match="TDCD: a round from the same state differs the second time"):
        check_purity(Forgetful, CASES["TDCD"])


def test_a_changed_task_is_found() -> None:
    case = {one.name: one for one in all_cases()}["TDCD"]  # modules of its own
    with pytest.raises(AssertionError, match=r"two equal runs differ|own modules were changed"):
        check_purity(Careless, case)


def test_all_is_looked_at() -> None:
    for wrong in (OffABit, ByChance):
        with pytest.raises(AssertionError):
            check_federation(wrong, cases=FEW, rounds=3)


@pytest.mark.parametrize("case", refused_cases(), ids=lambda case: case.name)
def test_both_engines_refuse_with_one_line(case: FederationCase) -> None:
    lines = []
    for make in (simulator, PartyByParty):
        with pytest.raises(Exception, match=r"\S") as caught:
            make(case.data, case.task, case.algorithm, seed=case.seed, codecs=case.codecs)
        lines.append(f"{caught.type.__name__}: {caught.value}")
    assert lines[0] == lines[1]
    assert "\n" not in lines[0]


class Generous(Wrapped):
    def __init__(self, *given: Any, **options: Any) -> None:
        try:
            super().__init__(*given, **options)
        except ConfigError:
            super().__init__(FEW[0].data, FEW[0].task, FEW[0].algorithm)


class Vague(Wrapped):
    def __init__(self, *given: Any, **options: Any) -> None:
        try:
            super().__init__(*given, **options)
        except ConfigError:
            raise ConfigError("something is wrong") from None


@pytest.mark.parametrize(("wrong", "said"), [(Generous, "not refused"), (Vague, "ConfigError: something is wrong")])
def test_a_missing_refusal_is_found(wrong: type[Wrapped], said: str) -> None:
    with pytest.raises(AssertionError, match=f"several clients per silo: .*{said}"):
        check_refusals(wrong)
