"""Runs as TensorBoard reads them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from crosshatch.errors import DivergenceError, RunError
from crosshatch.runs.train import train
from tests.support.breaking import BreakAt
from tests.support.run_configs import MakeConfig
from tests.support.training import StopAt, lines

pytest.importorskip("tensorboard", reason='TensorBoard is not installed: pip install -e ".[tracking]"')

TRACKED = {"track": ["tensorboard"]}
COSTS = ("iteration", "bytes", "messages", "sim_seconds", "wall_seconds")


def events(out: Path) -> Any:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    found = EventAccumulator(str(out / "tracking" / "tensorboard"), size_guidance={"scalars": 0})
    found.Reload()
    return found


def texts(out: Path, name: str) -> list[tuple[int, str]]:
    return [
        (event.step, event.tensor_proto.string_val[0].decode()) for event in events(out).Tensors(f"{name}/text_summary")
    ]


def statuses(out: Path) -> list[int]:
    """How the sessions ended, file by file."""
    from tensorboard.backend.event_processing.event_file_loader import EventFileLoader
    from tensorboard.plugins.hparams import metadata

    found = []
    for file in sorted((out / "tracking" / "tensorboard").iterdir()):
        for event in EventFileLoader(str(file)).Load():
            for value in event.summary.value:
                if value.tag == metadata.SESSION_END_INFO_TAG:
                    content = value.metadata.plugin_data.content
                    found.append(metadata.parse_session_end_info_plugin_data(content).status)
    return found


def require_equal(out: Path) -> None:
    """Every figure of every evaluation is there once; TensorBoard keeps single precision."""
    rows, found = lines(out, wall=True), events(out)
    names = {name for row in rows for name in row} - {"round"}
    tags = {name: f"{'cost' if name in COSTS else 'metrics'}/{name}" for name in names}
    assert set(found.Tags()["scalars"]) == set(tags.values())
    for name, tag in tags.items():
        scalars = found.Scalars(tag)
        assert [one.step for one in scalars] == [row["round"] for row in rows]
        if name != "wall_seconds":
            assert [one.value for one in scalars] == pytest.approx([row[name] for row in rows], rel=1e-6)


def test_a_run(make_config: MakeConfig, out: Path) -> None:
    from tensorboard.plugins.hparams import api_pb2, metadata

    train(make_config(run=TRACKED), out=out)
    require_equal(out)
    ((step, config),) = texts(out, "config")
    assert step == 0
    assert "\n".join(line[4:] for line in config.splitlines()) == (out / "config.toml").read_text().rstrip("\n")
    assert texts(out, "state") == [(6, "finished")]
    ((step, summary),) = texts(out, "summary")
    assert (step, json.loads(summary)) == (6, json.loads((out / "summary.json").read_text()))
    about = events(out).SummaryMetadata(metadata.SESSION_START_INFO_TAG).plugin_data.content
    settings = metadata.parse_session_start_info_plugin_data(about).hparams
    assert settings["algorithm.step_size"].number_value == 0.3
    assert settings["data.name"].string_value == "breast_cancer"
    assert settings["tag.algorithm"].string_value == "tdcd"
    assert statuses(out) == [api_pb2.STATUS_SUCCESS]


@pytest.mark.parametrize("stop", [1, 4])
def test_a_resumed_run(make_config: MakeConfig, out: Path, stop: int) -> None:
    from tensorboard.plugins.hparams import api_pb2

    config = make_config(run=TRACKED, evaluate={"every": 1})
    train(config, out=out, watcher=StopAt(stop))
    assert texts(out, "state") == [(stop, "stopped")]
    train(config, out=out, resume=True)
    require_equal(out)
    assert texts(out, "state") == [(stop, "stopped"), (6, "finished")]
    assert len(texts(out, "config")) == 1
    assert statuses(out) == [api_pb2.STATUS_RUNNING, api_pb2.STATUS_SUCCESS]


@pytest.mark.parametrize("cut", [3, 400, 10**6])
def test_a_file_that_a_kill_cut(make_config: MakeConfig, out: Path, cut: int) -> None:
    """In the middle of a record, in that of an evaluation, and before its first one."""
    config = make_config(run=TRACKED | {"checkpoint_every": 6}, evaluate={"every": 1})
    with pytest.raises(ZeroDivisionError):
        train(config, out=out, watcher=BreakAt(3))
    (file,) = (out / "tracking" / "tensorboard").iterdir()
    file.write_bytes(file.read_bytes()[: -min(cut, file.stat().st_size - 10)])
    train(config, out=out, resume=True)
    require_equal(out)


def test_a_run_that_diverges(make_config: MakeConfig, out: Path) -> None:
    from tensorboard.plugins.hparams import api_pb2

    with pytest.raises(DivergenceError):
        train(make_config(run=TRACKED, algorithm={"step_size": 1e4}), out=out)
    require_equal(out)
    ((_, state),) = texts(out, "state")
    assert state.startswith("diverged: ")
    assert "diverged" in json.loads(texts(out, "summary")[0][1])
    assert statuses(out) == [api_pb2.STATUS_FAILURE]


def test_a_run_that_is_given_up_leaves_nothing(make_config: MakeConfig, out: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        train(make_config(run=TRACKED), out=out, watcher=BreakAt(0))
    assert not out.parent.exists()


def test_a_folder_that_cannot_be_written(make_config: MakeConfig, out: Path) -> None:
    train(make_config(), out=out, watcher=StopAt(3))
    (out / "tracking").write_text("in the way")
    with pytest.raises(
        RunError, match=r"run.track: TensorBoard's files in .* cannot be written .*leave tensorboard out"
    ):
        train(make_config(run=TRACKED), out=out, resume=True)


def test_tracked_from_the_middle_on(make_config: MakeConfig, out: Path) -> None:
    train(make_config(), out=out, watcher=StopAt(3))
    train(make_config(run=TRACKED), out=out, resume=True)
    require_equal(out)


def test_the_same_numbers_as_without(make_config: MakeConfig, tmp_path: Path) -> None:
    train(make_config(), out=tmp_path / "plain")
    train(make_config(run=TRACKED), out=tmp_path / "tracked")
    assert lines(tmp_path / "plain") == lines(tmp_path / "tracked")
