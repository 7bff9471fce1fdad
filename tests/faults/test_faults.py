"""The list of faults fits the tree: every text stands where it says, and the tests it names are there."""

from __future__ import annotations

import ast

import pytest

from tests.faults.plant import BY_PARTIES, ROOT, Fault, faults, run_by_parties


@pytest.mark.parametrize("fault", faults(), ids=lambda fault: fault.name)
def test_a_fault_can_be_planted(fault: Fault) -> None:
    planted = fault.planted(ROOT)
    assert planted != (ROOT / fault.file).read_text(encoding="utf-8")
    assert ast.parse(planted)
    assert all((ROOT / test.partition("::")[0]).exists() for test in fault.tests)


def test_names_are_told_apart() -> None:
    names = [fault.name for fault in faults()]
    assert len(set(names)) == len(names) >= 15


def test_parties_share_half_of_what_faults_are_planted_in() -> None:
    """They judge the other half; a fault in what both engines run has tests of its own."""
    shared, engines = run_by_parties(), [fault for fault in faults() if fault.of_engines]
    apart = {fault.file for fault in engines if fault.file not in shared}
    assert not any(file.startswith("src/crosshatch/simulator/") for file in shared)
    assert {"src/crosshatch/local/loop.py", "src/crosshatch/simulator/accounting/links.py"} <= apart
    assert {"src/crosshatch/protocol/batches.py", "src/crosshatch/algorithms/abcd.py"} <= shared
    assert all(set(fault.tests).isdisjoint(BY_PARTIES) for fault in engines if fault.file in shared)
