"""Processes that stop together go on anywhere; a party's lost state need not end a run."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from crosshatch.parties.recovery.packed_state import StoredState, unpack
from crosshatch.runs.launching.process_plan import ProcessPlan
from crosshatch.runtime.store import Store
from tests.runs.launching.kinds import config_of
from tests.support.launched import check_as_in_memory, check_as_trained, running, wait_for


@pytest.mark.slow
def test_stopped_after_the_same_round_and_resumed_and_begun_again(tmp_path: Path) -> None:
    config, out = config_of(tmp_path, "TDCD", "run.rounds=400"), tmp_path / "out"
    with running(tmp_path, out, "run.rounds=400") as process:
        wait_for(out / "parties" / "hub-0-0" / "hub-0-0" / "state-10", process)
        process.send_signal(signal.SIGINT)
        said, _ = process.communicate(timeout=200)
    assert process.returncode == 130, said
    states = [newest(out, house) for house in ("hub-0-0", "client-0-1-1", "client-0-0-0")]
    assert len({one.round for one in states}) == 1
    assert all(one.clean for one in states)
    (out / "parties" / "hub-0-1" / "hub-0-1" / "state").unlink()
    for further, told in (
        ((), b"hub-0-1: its state is gone from"),
        (("--from", "7"), b"--from 7: not every party has kept a state of that round: all have kept those of 5, 10"),
    ):
        with running(tmp_path, out, "run.rounds=400", resume=True, further=further) as process:
            said, _ = process.communicate(timeout=200)
        assert process.returncode == 2
        assert told in said
    with running(tmp_path, out, "run.rounds=400", resume=True, further=("--from", "10")) as process:
        said, _ = process.communicate(timeout=200)
    assert process.returncode == 0, said
    check_as_in_memory(config, out)
    check_as_trained(config, out, tmp_path / "trained")
    (decided,) = (out / "parties" / "begun_again.jsonl").read_text().splitlines()
    assert json.loads(decided)["round"] == 10
    assert newest(out, "client-0-1-1").again == 1


def newest(out: Path, house: str) -> StoredState:
    written = Store(out / "parties" / house / house).read()
    assert written is not None
    return unpack(written, run=ProcessPlan.read(out / "parties" / house).run, party=house)
