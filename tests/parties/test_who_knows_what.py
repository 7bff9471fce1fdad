"""Nobody knows more than it must: whatever a party object can reach is something that its role may hold.

`MAY` is the table of `docs/parties.md`. To tell whose numbers are whose, every feature and label is a number of its
own; a party that reaches one, wherever it is kept, is found.
"""

from __future__ import annotations

import gc
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from crosshatch.data.federated import FederatedData
from crosshatch.errors import ConfigError
from crosshatch.parties import parties_of as assembling
from crosshatch.parties.agents.graph_agent import Agent
from crosshatch.parties.evaluation.held_out import held_out
from crosshatch.parties.evaluation.text import Found, Scored, Verdict
from crosshatch.parties.evaluation.with_evaluation import EvaluationPlan
from crosshatch.parties.party import Party
from crosshatch.protocol.members import members_of, pair
from crosshatch.simulator.simulator import Simulator
from crosshatch.task.task import Task
from crosshatch.testing.federations import FederationCase, all_cases, make_data, make_task
from crosshatch.testing.parties.engine import PartyByParty
from crosshatch.testing.transfer_federations import transfer_cases
from tests.exchanges.texts import Text

CASES = {case.name: case for case in (*all_cases(), *transfer_cases())}
COLUMNS = ("training labels", "test labels", "rows", "test rows", "ids", "owners", "blocks", "head")
NO = "-"
# Whose: its "own" samples', its "silo"'s, "all". The notes stand on the page.
MAY: dict[str, tuple[str, ...]] = {
    "client": ("own", "own, or none", "own", "own", "own", NO, "silo", "silo, or told"),
    "hub": (NO, "all, or none", NO, NO, NO, "silo", "silo", "silo, or passed on"),
    "branch": (NO, NO, NO, NO, NO, "silo", "silo", "silo"),
    "server": (NO, NO, NO, NO, NO, "all, or none", "all", "all"),
    "agent": ("all", "all, or none", "own", "own", "all", NO, "own", NO),
    "server of tokens": (NO, NO, NO, NO, NO, NO, NO, NO),
}


def marked(case: FederationCase) -> FederationCase:
    """The same with labels that are numbers of their own, near the ones they had."""
    data, random = case.data, np.random.default_rng(3)

    def apart(y: Tensor) -> Tensor:
        return y + torch.as_tensor(random.uniform(1e-4, 1e-3, tuple(y.shape)))

    silos = tuple(replace(silo, test=torch.as_tensor(random.normal(size=(2, 3)))) for silo in data.silos)
    alone = data.alone if data.alone is None else replace(data.alone, y=apart(data.alone.y))
    data = replace(data, silos=silos, y_train=apart(data.y_train), y_test=apart(data.y_test), alone=alone)
    return replace(case, data=data)


def reached(start: object) -> Iterator[Any]:
    """Everything that can be reached: attributes, containers, closures and bound methods; not what modules define."""
    seen: set[int] = set()
    todo = [start]
    while todo:
        one = todo.pop()
        if id(one) in seen or isinstance(one, type | ModuleType | BuiltinFunctionType | str | bytes | int | float):
            continue
        seen.add(id(one))
        yield one
        if isinstance(one, FunctionType):
            todo += [one.__closure__, one.__defaults__, one.__kwdefaults__, vars(one)]
        elif isinstance(one, MethodType):
            todo += [one.__self__, one.__func__]
        else:
            todo += gc.get_referents(one)
            todo += list(vars(one).values()) if hasattr(one, "__dict__") else []


@dataclass(frozen=True)
class Reach:
    """What a party can reach: numbers, arrays of whole numbers, and the objects themselves."""

    floats: frozenset[float]
    arrays: tuple[tuple[int, ...], ...]
    objects: tuple[Any, ...]

    @classmethod
    def of(cls, party: Party) -> Reach:
        no_line: Any = None  # it leads to everybody, and is not the party's own
        party.join(no_line)
        objects, floats, arrays = tuple(reached(party)), set[float](), list[tuple[int, ...]]()
        for one in objects:
            numbers = one.detach().numpy() if isinstance(one, Tensor) else one
            if isinstance(numbers, np.ndarray) and numbers.dtype.kind == "f":
                floats |= set(numbers.reshape(-1).tolist())
            elif isinstance(numbers, np.ndarray) and numbers.dtype.kind == "i":
                arrays.append(tuple(numbers.reshape(-1).tolist()))
        return cls(frozenset(floats), tuple(arrays), objects)


def numbers(tensor: Tensor) -> frozenset[float]:
    """Those of a tensor that nobody has by chance."""
    return frozenset(tensor.detach().reshape(-1).tolist()) - {0.0, 1.0, -1.0}


@dataclass(frozen=True)
class Ran:
    """A federation after some rounds, and what each of its parties can reach."""

    case: FederationCase
    engine: PartyByParty
    reach: dict[str, Reach]

    def group_of(self, name: str) -> int:
        return 0 if name.startswith("agent") else int(name.split("-")[1])

    def silo_of(self, name: str) -> int:
        return int(name.split("-")[1 if name.startswith("agent") else 2])

    def data_of(self, group: int) -> FederatedData:
        """The samples of a group, divided as its parties have them."""
        data = members_of(self.case.data, seed=self.case.seed)[group].data
        return pair(data) if getattr(self.case.algorithm, "pairs", False) else data


@cache
def ran(name: str) -> Ran:
    """Some rounds of a case, under numbers that can be told apart; duals are equal at first, and so are biases."""
    case = marked(CASES[name])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(assembling, "require_labels", lambda *_: None)  # which are no longer 0 and 1
        plan = EvaluationPlan(held_out(case.data), 0, 1, 100, judge=Remembers())
        engine = PartyByParty(
            case.data, case.task, case.algorithm, seed=case.seed, codecs=case.codecs,
            evaluation=None if getattr(case.algorithm, "pairs", False) else plan,
        )  # fmt: skip
    for _ in range(8 if "DCPA" in name else 3):
        engine.run_round()
    return Ran(case, engine, {one: Reach.of(party) for one, party in engine.parties.items()})


class Remembers:
    """A judge that keeps whatever it was shown last."""

    found: Found | None = None

    def see(self, found: Found, done: int) -> Verdict:  # noqa: ARG002
        self.found = found
        return Verdict.BEST

    def close(self, scored: Scored, done: int) -> None:
        raise AssertionError(f"the run does not end, {len(scored.y)} rows after round {done}")

    def state(self) -> None:
        pass

    def load(self, state: object) -> None:
        raise AssertionError(f"nobody crashes: {state}")


def kind_of(party: Party) -> str:
    """The row of the table."""
    kind = party.name.split("-")[0]
    of_tokens = kind == "server" and "Token" in type(party.role).__name__
    return "server of tokens" if of_tokens else kind


def own_ids(found: Ran, name: str) -> np.ndarray[Any, Any]:
    """The samples that a party has rows of."""
    kind, data = name.split("-")[0], found.data_of(found.group_of(name)) if not name.startswith("server") else None
    if kind == "agent":
        return np.arange(len(found.case.data.y_train))
    if kind != "client":
        return np.empty(0, dtype=np.int64)
    assert data is not None
    return np.flatnonzero(data.silos[found.silo_of(name)].owners == int(name.split("-")[3]))


@pytest.mark.parametrize("name", CASES)
def test_labels_and_rows_are_their_holders_own(name: str) -> None:
    found = ran(name)
    case = found.case
    for one, party in found.engine.parties.items():
        may, reach, ids = MAY[kind_of(party)], found.reach[one].floats, own_ids(found, one)
        data = case.data if kind_of(party).startswith("server") else found.data_of(found.group_of(one))
        has = may[0] != NO and (data.label_silo is None or data.silos[found.silo_of(one)].name == data.label_silo)
        labels = numbers(data.y_train[ids]) if has else frozenset()
        rows = numbers(data.silos[found.silo_of(one)].train[ids]) if may[2] == "own" else frozenset()
        if data.alone is not None and has and data.alone.silo == data.silos[found.silo_of(one)].name and len(ids):
            labels, rows = labels | numbers(data.alone.y), rows | numbers(data.alone.x)
        every = numbers(case.data.y_train) | (frozenset() if case.data.alone is None else numbers(case.data.alone.y))
        assert reach & every == labels, f"{one} has other training labels than its own"
        others = frozenset().union(*(numbers(silo.train) for silo in case.data.silos))
        others |= frozenset() if case.data.alone is None else numbers(case.data.alone.x)
        assert reach & others == rows, f"{one} has other rows than its own"


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if not getattr(case.algorithm, "pairs", False)])
def test_test_rows_are_their_holders_own_and_labels_stay_with_one_silo(name: str) -> None:
    """Clients of the first group; labels with the holder's clients and hub, of shared ones with the first silo's."""
    found = ran(name)
    data, held = found.case.data, held_out(found.case.data)
    holder = 0 if data.label_silo is None else data.label_holder
    rows = [numbers(silo.test) for silo in data.silos]
    for one, party in found.engine.parties.items():
        kind, may, reach = kind_of(party), MAY[kind_of(party)], found.reach[one].floats
        own, first = list[int](), kind != "server of tokens" and found.group_of(one) == 0
        if kind == "agent":
            own = list(range(len(held.y_train)))
        elif kind == "client" and first:
            own = np.flatnonzero(held.silos[found.silo_of(one)].owners == int(one.split("-")[3])).tolist()
        silo = None if "server" in kind else found.silo_of(one)
        expected = frozenset() if silo is None else numbers(held.silos[silo].train[own])
        assert reach & frozenset().union(*rows) == (expected if may[3] == "own" else frozenset()), f"test rows of {one}"
        labels: list[int] = []
        if silo == holder and first and kind in ("hub", "client", "agent"):
            labels = own if kind == "client" else list(range(len(held.y_train)))
        assert reach & numbers(data.y_test) == numbers(held.y_train[labels]), f"test labels of {one}"
        assert not labels or may[1] != NO, one


@pytest.mark.parametrize("name", CASES)
def test_who_holds_which_sample_is_known_to_the_silo(name: str) -> None:
    """Without a selection: hubs and branches know it of their silo, a server where it averages clients itself."""
    found = ran(name)
    algorithm: Any = found.case.algorithm
    selects, together = getattr(algorithm, "fraction", None), getattr(algorithm, "within", "silo") == "federation"
    for one, party in found.engine.parties.items():
        kind = kind_of(party)
        if kind in ("agent", "server", "server of tokens"):
            owned = [silo.owners for g in range(len(members_of(found.case.data, seed=0)))
                     for silo in found.data_of(g).silos if silo.clients > 1]  # fmt: skip
            knows = any(tuple(owners.tolist()) in found.reach[one].arrays for owners in owned)
            assert knows == (kind == "server" and together), one
            continue
        data, silo = found.data_of(found.group_of(one)), found.silo_of(one)
        most = max(data.silos, key=lambda silo: silo.clients)
        for j, other in enumerate(data.silos):
            knows = tuple(other.owners.tolist()) in found.reach[one].arrays
            same = other.owners.tolist() == data.silos[silo].owners.tolist()  # pairs are divided alike
            may = kind in ("hub", "branch") and (j == silo or same)
            if selects is not None and selects < 1:  # a client learns it of its own samples, here perhaps of all
                whole = kind != "client" or len(own_ids(found, one)) == len(other.owners)
                may = may or (whole and other.owners.tolist() == most.owners.tolist())
            if other.clients > 1:
                assert knows == may, f"{one} and who holds which sample of silo {j}"
            for k in range(other.clients):
                ids = np.flatnonzero(other.owners == k)
                mine = np.array_equal(ids, own_ids(found, one))
                if len(ids) > 1 and len(ids) < len(other.owners) and not mine and not same:
                    assert tuple(ids.tolist()) not in found.reach[one].arrays, f"{one} has the ids of {j}/{k}"


@pytest.mark.parametrize("name", CASES)
def test_blocks_stay_in_their_silo_or_go_to_servers(name: str) -> None:
    found = ran(name)
    task, weights = found.case.task, found.engine.weights
    for one, party in found.engine.parties.items():
        kind = kind_of(party)
        if kind == "server":
            continue
        silo = None if kind == "server of tokens" else found.silo_of(one)
        for j, vector in enumerate(weights):
            size = sum(p.numel() for p in task.blocks[j].parameters())
            first = torch.cat([p.reshape(-1).double() for p in task.blocks[j].parameters()])
            theirs = numbers(vector[:size]) | numbers(first)
            assert j == silo or not found.reach[one].floats & theirs, f"{one} has numbers of the block of silo {j}"


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.task.head_holder is not None])
def test_the_head_is_its_holders_and_told_where_labels_are_shared(name: str) -> None:
    found = ran(name)
    task, holder = found.case.task, found.case.task.head_holder
    assert holder is not None
    size = sum(p.numel() for p in task.blocks[holder].parameters())
    head = numbers(found.engine.weights[holder][size:])
    first = frozenset().union(*(numbers(p) for p in (task.head or nn.Identity()).double().parameters()))
    for one, party in found.engine.parties.items():
        kind, reach = kind_of(party), found.reach[one]
        if kind == "server" or found.silo_of(one) == holder:
            continue
        assert not reach.floats & head, f"{one} has the head as it is after the round"
        if found.case.data.label_silo is not None:
            assert not reach.floats & first, f"{one} has no use for the head"


@pytest.mark.parametrize("name", CASES)
def test_modules_are_for_those_who_compute(name: str) -> None:
    """Hubs, branches and servers have vectors; a client or agent has its own silo's block, and the head's module."""
    found = ran(name)
    for one, party in found.engine.parties.items():
        reach = found.reach[one]
        foreign = [obj for obj in reach.objects if isinstance(obj, FederatedData | Task)]
        assert not foreign, f"{one} can reach the {type(foreign[0]).__name__} of all"
        has = any(isinstance(obj, nn.Module) for obj in reach.objects)
        assert has == (kind_of(party) in ("client", "agent")), one
        if isinstance(getattr(party.role, "agent", None), Agent):
            assert sum(isinstance(obj, Agent) for obj in reach.objects) == 1, f"{one} can reach another agent"


def test_the_walk_goes_into_closures_and_containers() -> None:
    kept = torch.tensor([0.12345], dtype=torch.float64)
    for hidden in (lambda: kept, {"a": [(kept,)]}, type("Box", (), {})()):
        if not isinstance(hidden, dict) and not callable(hidden):
            hidden.inside = kept
        assert any(one is kept for one in reached(hidden))


def test_the_page_says_the_same() -> None:
    page = (Path(__file__).parents[2] / "docs" / "parties.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([a-z ]+) \|(.+)\|$", page.split("## Who may hold what")[1].split("\n\n## ")[0], re.M)
    told = {name: tuple(cell.split("(")[0].strip() for cell in cells.split("|")) for name, cells in rows}
    assert told.pop("role") == COLUMNS
    assert told == MAY


def selecting(fed: Any, blocks: Any, r: int) -> Any:
    fed.select(0.5, round=r)
    return blocks


@pytest.mark.parametrize("engine", [PartyByParty, Simulator])
def test_a_text_that_selects_says_so(engine: type[PartyByParty | Simulator]) -> None:
    """Otherwise nobody was told who holds which sample; the simulator asks no less."""
    made = engine(make_data((2, 3)), make_task(2), Text(selecting))
    with pytest.raises(ConfigError, match=r"select: parties know .* for texts alone that say so: give .* `fraction`"):
        made.run_round()
