"""The first lines of a run say who takes part and what a simulated second stands for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from crosshatch.cli.opening import describe_network, opening, parties
from crosshatch.network import BandwidthNetwork, ConstantNetwork, Link
from crosshatch.runs.config import decode_config
from crosshatch.runs.prepare import prepare


def tables(**federation: Any) -> dict[str, Any]:
    return {
        "data": {"name": "wine"},
        "federation": {"silos": [{"name": "lab"}, {"name": "clinic"}], **federation},
        "algorithm": {"name": "tiered", "tiers": "H(4) V(2) H(2)" if "groups" in federation else "V(2) H(2)"},
        "run": {"rounds": 1, "name": "r", "threads": 1},
    }


@pytest.mark.parametrize(
    ("federation", "words"),
    [
        ({"clients": 3}, "lab (3 clients), clinic (3 clients)"),
        ({"clients": 5, "groups": 4}, "4 groups of lab (5 clients), clinic (5 clients)"),
        ({"groups": [4]}, "4 groups of lab (1 client), clinic (1 client)"),
        # 142 training samples in four groups: 35 or 36 in each
        ({"clients": "each", "groups": 4}, "4 groups of lab (35 to 36 clients), clinic (35 to 36 clients)"),
    ],
)
def test_clients_are_counted_in_a_group(federation: dict[str, Any], words: str) -> None:
    prepared = prepare(decode_config(tables(**federation)), folder=None)
    assert parties(prepared.simulator.data) == words
    first, second, *_ = opening(prepared, Path("runs/r"))
    assert first.endswith(f" on {words}, into runs/r")
    assert second == "constant network: 10 s per round trip, 1 s per local step"


def test_networks_in_words() -> None:
    links = {"client-hub": Link(0.05, 14, 110), "hub-hub": Link(0.02, 1000, 1000), "group-server": Link(latency=1)}
    assert describe_network(BandwidthNetwork(links, 0.002, slow={"lab/1": 3.0})) == (
        "bandwidth network: client-hub 50 ms, 14 Mbit/s up, 110 Mbit/s down; hub-hub 20 ms, 1000 Mbit/s each way; "
        "group-server 1 s; 2 ms per local step; 1 party differs"
    )
    assert describe_network(ConstantNetwork(1, 0, slow={"lab": 2.0, "lab/1": 3.0})).endswith("; 2 parties differ")


@pytest.mark.parametrize(
    ("algorithm", "due"),
    [
        ({"name": "tdcd", "batch_size": 3}, True),
        ({"name": "tdcd", "batch_size": 3, "weights": "samples"}, True),
        ({"name": "tdcd", "batch_size": 3, "weights": "at_work"}, False),
        ({"name": "tdcd"}, False),
        ({"name": "tdcd", "batch_size": 3, "batches": "fresh"}, False),  # ten batches per round reach enough
        ({"name": "abcd", "batch_size": 3}, True),
        ({"name": "abcd", "batch_size": 3, "weights": "at_work"}, False),
        ({"name": "tiered", "tiers": "V(2) H(2)", "fraction": 0.02}, True),
        ({"name": "central", "batch_size": 3}, False),
    ],
)
def test_a_note_where_nearly_all_clients_are_idle(algorithm: dict[str, Any], due: bool) -> None:
    prepared = prepare(decode_config(tables(clients="each") | {"algorithm": algorithm}), folder=None)
    notes = [line for line in opening(prepared, Path("runs/r")) if "clients of silo 'lab'" in line]
    assert len(notes) == due
    assert all(note.startswith("note: a round reaches about 3 of the 142 clients") for note in notes)


def test_central_training_has_no_tiers() -> None:
    prepared = prepare(decode_config(tables() | {"algorithm": {"name": "central"}}), folder=None)
    first = opening(prepared, Path("run"))[0]
    assert "Central training, all in one place on" in first
    assert "V(" not in first
