"""Crashes leave no trace: `check_restarts` trains a federation while parties crash and connections break.

The model and the meter at the end are those of an undisturbed run, to the bit. To see one seed again:

    python -m crosshatch.testing.check_restarts "TDCD" 17
"""

import sys
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache

import torch
from torch import Tensor

from crosshatch.algorithms.abcd import ABCD
from crosshatch.algorithms.tdcd import TDCD
from crosshatch.codecs import parse_codec
from crosshatch.errors import CrosshatchError
from crosshatch.meter import Meter
from crosshatch.parties.line import Name
from crosshatch.parties.parties_of import parties_of
from crosshatch.parties.party import Party
from crosshatch.parties.seeing_all import model_of, total
from crosshatch.schedules import InverseSqrt
from crosshatch.task.optimisers import Adam
from crosshatch.testing.faults import FaultCounts
from crosshatch.testing.federations import (
    FederationCase,
    graph_cases,
    make_data,
    make_task,
    optimiser_cases,
    vertical_cases,
)
from crosshatch.testing.parties.engine import PartyByParty
from crosshatch.testing.run_disturbed import run_disturbed
from crosshatch.testing.transfer_federations import transfer_cases

_NAMED = {
    "TDCD, random blocks, Adam, labels held, coded": 10,
    "HSGD, coded": 8,
    "four tiers, Adam averaged": 8,
    "MTCD": 20,
    "MTCD, small networks": 20,
    "DCPA": 12,
    "transfer, labels held, coded": 10,
    "transfer, ABCD, distance, labels held": 10,
    "JFL": 8,
    "branches, coded": 6,
}
_FEEDBACK = dict.fromkeys(("share", "derivatives", "broadcast", "average"), "ef(topk(0.5))")


@lru_cache(maxsize=1)
def restart_cases() -> Mapping[str, tuple[FederationCase, int]]:
    """Federations by name with how many rounds to run: every kind of party, and every kind of state it may have."""
    eta = InverseSqrt(0.1)
    named = {case.name: case for case in (*vertical_cases(), *optimiser_cases(), *graph_cases(), *transfer_cases())}

    def abcd(name: str, clients: tuple[int, int], batch: int) -> FederationCase:
        data, task = make_data(clients, held=1, samples=24), replace(make_task(2), optimiser=Adam(state="kept"))
        apart = clients != (1, 1)  # in silos of one party blocks do not travel
        codecs = {x: parse_codec(text) for x, text in _FEEDBACK.items() if apart or x in ("share", "derivatives")}
        return FederationCase(name, data, task, ABCD(2, eta, batch, "silos", window=3), codecs)

    tdcd = FederationCase("TDCD", make_data((2, 2), samples=24), make_task(2), TDCD(2, eta, 6))
    cases = [
        (tdcd, 8),
        (replace(tdcd, name="TDCD, idle clients", data=make_data((3, 3), samples=24), algorithm=TDCD(2, eta, 2)), 12),
        (abcd("ABCD", (2, 2), 6), 10),
        (abcd("ABCD, idle clients", (3, 3), 2), 12),
        (abcd("ABCD, silos of one party", (1, 1), 6), 10),
        *((named[name], rounds) for name, rounds in _NAMED.items()),
    ]
    return {case.name: (case, rounds) for case, rounds in cases}


@lru_cache(maxsize=16)
def undisturbed(name: str, rounds: int | None = None) -> tuple[tuple[Tensor, ...], Meter, Mapping[Name, list[Name]]]:
    """Model and meter of parties in turn after so many rounds, by default those of the case, and who talks to whom."""
    case, usual = restart_cases()[name]
    engine = PartyByParty(case.data, case.task, case.algorithm, seed=case.seed, codecs=case.codecs)
    for _ in range(usual if rounds is None else rounds):
        engine.run_round()
    pairs = engine.turns.pairs
    peers = {name: sorted({a if b == name else b for a, b in pairs if name in (a, b)}) for name in engine.parties}
    return engine.weights, engine.meter, peers


@lru_cache(maxsize=16)
def _fresh(name: str) -> dict[Name, Party]:
    case, _ = restart_cases()[name]
    return parties_of(case.data, case.task, case.algorithm, seed=case.seed, codecs=case.codecs)


def check_restarts(name: str, seed: int) -> FaultCounts:
    """One of the `restart_cases` in the world of a seed; what went wrong there. An AssertionError says what failed.

    >>> check_restarts("TDCD", 5).crashes > 0
    True
    """
    weights, meter, peers = undisturbed(name)
    try:
        end = run_disturbed(_fresh(name), peers, rounds=restart_cases()[name][1], seed=seed)
        assert all(map(torch.equal, model_of(end.parties), weights)), "the model is another one"
        assert total(party.meter for party in end.parties.values()) == meter, "other bytes are counted"
        assert end.counted.kept <= end.rounds_kept, f"messages of {end.counted.kept} rounds were kept for a party"
    except (AssertionError, CrosshatchError) as error:
        command = f'python -m crosshatch.testing.check_restarts "{name}" {seed}'
        raise AssertionError(f"{name}, seed {seed}: {error}\nto see it again: {command}") from error
    return end.counted


if __name__ == "__main__":
    sys.stdout.write(f"{check_restarts(sys.argv[1], int(sys.argv[2]))}\n")
