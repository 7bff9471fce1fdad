"""Recorded messages: their files, what a stopped, killed or resumed run leaves of them, and what is refused."""

from __future__ import annotations

import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from crosshatch.algorithms.central import Central
from crosshatch.errors import ConfigError, RunError
from crosshatch.runs.config import Config, decode_config
from crosshatch.runs.recorded import message_files
from crosshatch.runs.recorded.message_files import read_messages
from crosshatch.runs.train import train
from crosshatch.simulator.listening import Heard
from tests.support.run_configs import MakeConfig
from tests.support.training import StopAt

SILOS = ("a", "b")


@pytest.fixture
def recorded(make_config: MakeConfig) -> MakeConfig:
    """`make_config` of a run that is recorded."""

    def make(**sections: dict[str, Any]) -> Any:
        run = {"record_messages": True, "rounds": 6} | sections.pop("run", {})
        return make_config(**{"federation": {"clients": 1}, **sections}, run=run)

    return make


def same(one: list[Heard], other: list[Heard]) -> bool:
    pairs = list(zip(one, other, strict=True))
    return all(
        a.place == b.place and (a.ids == b.ids).all() and torch.equal(a.values, b.values) for a, b in pairs
    ) and bool(pairs)


def files(out: Path) -> list[str]:
    return sorted(path.name for path in (out / "messages").iterdir())


def test_nothing_is_recorded_unless_asked_for(make_config: MakeConfig, out: Path) -> None:
    train(make_config(), out=out)
    assert not (out / "messages").exists()
    with pytest.raises(RunError, match=r"were not recorded: train it with run.record_messages = true"):
        list(read_messages(out, SILOS))


def test_who_sent_what_to_whom(recorded: MakeConfig, out: Path) -> None:
    train(recorded(), out=out)
    assert files(out) == [f"rounds-{r:06d}-{r + 2:06d}.safetensors" for r in (0, 2, 4)]
    heard = list(read_messages(out, SILOS))
    assert [m.place for m in heard[:2]] == [(0, "share", 0, 0, (1,), 0), (0, "share", 0, 1, (0,), 0)]
    assert [m.round for m in heard] == [r for r in range(6) for _ in SILOS]
    assert all(m.values.shape == (48, 1) and len(set(m.ids.tolist())) == 48 for m in heard)


def test_held_labels_send_derivatives_back(recorded: MakeConfig, out: Path) -> None:
    train(recorded(federation={"clients": 1, "labels": "b"}, algorithm={"derivatives": "each_round"}), out=out)
    heard = list(read_messages(out, SILOS))
    assert [(m.exchange, m.sender, m.receivers) for m in heard[:2]] == [("share", 0, (1,)), ("derivatives", 1, (0,))]


def test_a_trained_head_is_recorded_too(recorded: MakeConfig, out: Path) -> None:
    train(recorded(model={"fusion": "head", "outputs": 3}), out=out)
    heard = list(read_messages(out, SILOS))
    assert [(m.exchange, m.sender, tuple(m.values.shape)) for m in heard[:3]] == [
        ("share", 0, (48, 3)),
        ("head", 0, (7,)),
        ("share", 1, (48, 3)),
    ]


def test_with_a_codec_what_arrives_is_recorded(recorded: MakeConfig, tmp_path: Path) -> None:
    train(recorded(), out=tmp_path / "plain")
    train(recorded(codecs={"share": "half"}), out=tmp_path / "coded")
    plain, coded = (list(read_messages(tmp_path / name, SILOS)) for name in ("plain", "coded"))
    second = [(a, b) for a, b in zip(plain, coded, strict=True) if a.round == 1]
    assert all(not torch.equal(a.values, b.values) for a, b in second)
    assert all(torch.equal(b.values, b.values.half().float()) for _, b in second)


def test_recording_changes_no_number(recorded: MakeConfig, make_config: MakeConfig, tmp_path: Path) -> None:
    train(recorded(), out=tmp_path / "one")
    train(make_config(federation={"clients": 1}), out=tmp_path / "other")
    for name in ("a.safetensors", "b.safetensors"):
        one, other = ((tmp_path / run / "model" / name).read_bytes() for run in ("one", "other"))
        assert one == other


def test_a_run_nobody_listens_to_never_meets_the_listener(make_config: MakeConfig, out: Path) -> None:
    seen: set[str] = set()

    def watch(frame: Any, event: str, _: Any) -> None:
        if event == "call":
            seen.add(Path(frame.f_code.co_filename).name)

    before = sys.getprofile()
    sys.setprofile(watch)
    try:
        train(make_config(), out=out)
    finally:
        sys.setprofile(before)
    assert "simulator.py" in seen
    assert "listening.py" not in seen


def test_a_stopped_run_goes_on_recording(recorded: MakeConfig, tmp_path: Path) -> None:
    train(recorded(), out=tmp_path / "whole")
    stopped = train(recorded(), out=tmp_path / "run", watcher=StopAt(3))
    assert not stopped.finished
    train(recorded(), out=tmp_path / "run", resume=True)
    assert same(list(read_messages(tmp_path / "whole", SILOS)), list(read_messages(tmp_path / "run", SILOS)))


def test_a_killed_run_repeats_what_its_checkpoint_does_not_have(recorded: MakeConfig, tmp_path: Path) -> None:
    train(recorded(), out=tmp_path / "whole")
    train(recorded(run={"rounds": 4}), out=tmp_path / "run")
    later = tmp_path / "whole" / "messages" / "rounds-000004-000006.safetensors"
    shutil.copy(later, tmp_path / "run" / "messages" / "rounds-000004-000005.safetensors")
    (tmp_path / "run" / "messages" / "rounds-000004-000006.safetensors.partial").write_bytes(b"half")
    train(recorded(), out=tmp_path / "run", resume=True)
    assert files(tmp_path / "run") == files(tmp_path / "whole")
    assert same(list(read_messages(tmp_path / "whole", SILOS)), list(read_messages(tmp_path / "run", SILOS)))


def test_a_run_cannot_begin_to_record_later(recorded: MakeConfig, make_config: MakeConfig, out: Path) -> None:
    train(make_config(federation={"clients": 1}, run={"rounds": 2}), out=out)
    with pytest.raises(RunError, match=r"run.record_messages = True"):
        train(recorded(), out=out, resume=True)


def test_much_is_written_before_the_checkpoint(
    recorded: MakeConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train(recorded(), out=tmp_path / "whole")
    monkeypatch.setattr(message_files, "FULL", 1)
    train(recorded(run={"checkpoint_every": 6}), out=tmp_path / "run")
    assert len(files(tmp_path / "run")) == 6
    assert same(list(read_messages(tmp_path / "whole", SILOS)), list(read_messages(tmp_path / "run", SILOS)))


@pytest.mark.parametrize("every", [1, 6])
def test_too_much_is_refused_at_once(
    recorded: MakeConfig, out: Path, monkeypatch: pytest.MonkeyPatch, every: int
) -> None:
    monkeypatch.setattr(message_files, "LARGEST", 3_000)
    words = r"messages of 6 rounds take about 3\.\d+ kB, at most 3 kB are recorded: set fewer run.rounds"
    with pytest.raises(RunError, match=words):
        train(recorded(evaluate={"every": 6}, run={"checkpoint_every": every}), out=out)
    assert not out.exists()


def test_missing_files_are_noticed(recorded: MakeConfig, out: Path) -> None:
    train(recorded(), out=out)
    (out / "messages" / "rounds-000002-000004.safetensors").unlink()
    with pytest.raises(RunError, match=r"lacks the messages of round 2"):
        list(read_messages(out, SILOS))


def refused(config: Config, out: Path, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        train(config, out=out)
    assert not out.exists()


def test_where_silos_send_nothing(recorded: MakeConfig, out: Path) -> None:
    refused(replace(recorded(), algorithm=Central()), out, "run.record_messages = true: there is nothing to record")
    refused(recorded(federation={"silos": [{"name": "a", "groups": ["mean"]}]}), out, "at least two silos")


def test_groups_are_not_recorded(out: Path) -> None:
    tables: dict[str, Any] = {
        "data": {"name": "breast_cancer"}, "federation": {"silos": 2, "clients": 2, "groups": 2},
        "algorithm": {"name": "hsgd"}, "run": {"name": "x", "rounds": 2, "threads": 1, "record_messages": True},
    }  # fmt: skip
    refused(decode_config(tables), out, "in groups: set federation.groups = 1")
