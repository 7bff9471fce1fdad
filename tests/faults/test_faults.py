"""The list of faults fits the tree: every text stands where it says, and the tests it names are there."""

from __future__ import annotations

import ast

import pytest

from tests.faults.plant import ROOT, Fault, faults


@pytest.mark.parametrize("fault", faults(), ids=lambda fault: fault.name)
def test_a_fault_can_be_planted(fault: Fault) -> None:
    planted = fault.planted(ROOT)
    assert planted != (ROOT / fault.file).read_text(encoding="utf-8")
    assert ast.parse(planted)
    assert all((ROOT / test.partition("::")[0]).exists() for test in fault.tests)


def test_names_are_told_apart() -> None:
    names = [fault.name for fault in faults()]
    assert len(set(names)) == len(names) >= 15
