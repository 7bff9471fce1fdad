"""Declarations: those of the algorithms there are, of classes that inherit, and of plain ones."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass, fields
from typing import Any

import pytest

from crosshatch import ABCD, DCPA, HSGD, JFL, MTCD, STCD, TDCD, Central, FedAvg, FedBCD, FedSGD, Graph, Tiered
from crosshatch.exchanges import Declared, Planned, declared, on_duals, on_silos, on_tokens
from crosshatch.runs.config_names import ALGORITHMS
from crosshatch.theory import theorem_names


@dataclass(frozen=True)
class Plain:
    """As docs/howto/own-algorithm.md has it: no base class. `within` and `auto` are its own words."""

    local_steps: int = 2
    batch_size: int | None = 7
    within: float = 0.5
    auto: bool = True


@dataclass(frozen=True)
class Inheriting(Declared):
    pairs = True
    local_steps: int = 2
    fraction: float = 0.25


def test_defaults() -> None:
    nothing = declared(object())
    assert not nothing.central
    assert not nothing.pairs
    assert (nothing.batch_size, nothing.fraction, nothing.within) == (None, None, "silo")
    unplanned = Planned()
    assert unplanned.graph is None
    assert unplanned.auto == unplanned.unlike_theory == unplanned.proved_by == ()
    assert unplanned.measured() == ("step_size",)


def test_a_plain_class_declares_by_its_attributes() -> None:
    found = declared(Plain())
    assert found.batch_size == 7
    assert (found.fraction, found.central, found.pairs) == (None, False, False)


@pytest.mark.parametrize(
    "name", ["central", "pairs", "remembers", "returns_blocks", "continues_derivatives", "takes_turns"]
)
def test_a_plain_class_declares_whatever_the_page_says_it_may(name: str) -> None:
    assert getattr(declared(type("Plain", (), {name: True})()), name)
    assert not getattr(declared(object()), name)


def test_other_words_of_a_plain_class_are_no_declarations() -> None:
    found = declared(Plain())
    assert found.within == "silo"
    assert not hasattr(found, "auto")


def test_what_one_plain_class_declares_is_not_declared_by_another() -> None:
    assert declared(Plain(batch_size=3)).batch_size == 3
    assert declared(object()).batch_size is None


def test_a_class_that_inherits_declares_for_itself() -> None:
    algorithm = Inheriting()
    assert declared(algorithm) is algorithm
    assert (algorithm.pairs, algorithm.fraction, algorithm.batch_size) == (True, 0.25, None)
    assert [field.name for field in fields(Inheriting)] == ["local_steps", "fraction"]


@pytest.mark.parametrize("name", ALGORITHMS)
def test_every_algorithm_of_a_config_inherits(name: str) -> None:
    algorithm = ALGORITHMS[name]()
    assert declared(algorithm) is algorithm
    settings = {field.name for field in fields(algorithm)}
    assert {*algorithm.auto, *algorithm.measured()} <= settings & {"global_steps", "local_steps", "step_size"}
    assert set(algorithm.proved_by) <= {
        theorem_names.FEDBCD,
        theorem_names.ICASSP,
        theorem_names.TDCD,
        theorem_names.HSGD,
        theorem_names.ABCD,
    }


EXPECTED: dict[type[Any], dict[str, Any]] = {
    ABCD: {
        "auto": ("step_size",),
        "continues_derivatives": True,
        "derivatives": "continued",
        "proved_by": ("ABCD, our theorem",),
        "remembers": True,
        "returns_blocks": True,
        "window": 2,
    },
    Central: {"central": True},
    DCPA: {"graph": Graph(), "has_schedule": False, "finds_step": True},
    FedAvg: {"batches": "fresh", "returns_blocks": True, "weights": "samples"},
    FedBCD: {"auto": ("local_steps", "step_size"), "encrypts": True, "proved_by": ("FedBCD, Theorem 2",)},
    FedSGD: {"auto": ("step_size",), "encrypts": True, "proved_by": ("FedBCD, Theorem 2",)},
    HSGD: {
        "auto": ("global_steps", "local_steps", "step_size"),
        "fraction": 1.0,
        "returns_blocks": True,
        "weights": "at_work",
        "proved_by": ("HSGD, Theorem 1",),
    },
    JFL: {"pairs": True, "within": "federation", "fraction": 1.0, "weights": "at_work"},
    MTCD: {"graph": Graph(), "finds_step": True},
    STCD: {"graph": Graph(), "finds_step": True},
    TDCD: {
        "auto": ("local_steps", "step_size"),
        "asks_each_step": True,
        "derivatives": "each_step",
        "returns_blocks": True,
        "proved_by": ("ICASSP, Theorem 4.1", "TDCD, Theorem 1"),
    },
    Tiered: {"auto": ("step_size",), "returns_blocks": True},
}


@pytest.mark.parametrize("kind", EXPECTED, ids=lambda kind: kind.__name__)
def test_declarations(kind: type[Any]) -> None:
    algorithm, standard = kind(), Planned()
    names = [key for key in dir(standard) if not key.startswith("_") and key not in ("shape", "topology")]
    keys = [key for key in names if not callable(getattr(standard, key))]
    found = {key: getattr(algorithm, key) for key in keys if getattr(algorithm, key) != getattr(standard, key)}
    assert found == EXPECTED[kind]
    assert set(EXPECTED) == set(ALGORITHMS.values())


def test_declarations_that_follow_from_settings() -> None:
    assert TDCD(batches="fresh").fresh_batches
    assert Central(batches="fresh").fresh_batches
    assert (FedAvg().fresh_batches, FedAvg(batch_size=8).fresh_batches) == (False, True)
    assert not TDCD(derivatives="each_round").asks_each_step
    assert FedBCD(order="sequential", proximal=0.1).unlike_theory == ("silos take turns", "steps are pulled back")
    assert FedBCD(proximal=0.1).unlike_theory == ("steps are pulled back",)
    assert TDCD(order="sequential").unlike_theory == ("silos take turns",)
    assert TDCD(weights="at_work").unlike_theory == ("clients do not all count alike",)
    assert FedBCD(derivatives="continued").continues_derivatives
    assert TDCD(derivatives="continued").continues_derivatives
    assert not TDCD(derivatives="continued").asks_each_step
    assert TDCD(order="sequential").takes_turns
    assert FedBCD(order="sequential").takes_turns


def test_a_silo_expects_the_others_to_stand_still_unless_it_anticipates() -> None:
    still = [kind() for kind in ALGORITHMS.values() if kind is not ABCD]
    assert {(algorithm.anticipated(6), algorithm.window) for algorithm in still} == {(None, 1)}
    assert (ABCD(anticipation="0.5 silos").anticipated(6), ABCD(anticipation="silos").anticipated(6)) == (3.0, 6.0)


def test_intervals_go_together() -> None:
    assert HSGD(global_steps=20, local_steps=10).with_interval(3) == HSGD(global_steps=3, local_steps=3)
    assert TDCD(10, 0.2, 64).with_interval(3) == TDCD(3, 0.2, 64)
    assert STCD().with_settings(graph=Graph("ring")) == STCD(graph=Graph("ring"))


def test_kinds_of_exchanges() -> None:
    assert [name for name, kind in ALGORITHMS.items() if on_tokens(kind())] == ["mtcd", "stcd"]
    assert [name for name, kind in ALGORITHMS.items() if on_duals(kind())] == ["dcpa"]
    assert [name for name, kind in ALGORITHMS.items() if not on_silos(kind())] == ["dcpa", "mtcd", "stcd"]


def test_declarations_need_no_torch() -> None:
    program = "import sys, crosshatch.exchanges, crosshatch.runs.config_names; print(*sys.modules)"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert {"torch", "polars"}.isdisjoint(ran.stdout.split())
