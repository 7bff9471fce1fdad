"""One thread against two: the same numbers to 1e-5 in a short run, for every way in which local steps are computed.

In a loop they are the same to the last bit, so that nothing can grow: neither where a codec selects, nor in long runs.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from crosshatch.algorithms.fedbcd import FedBCD
from crosshatch.data.build import federate, load_dataset
from crosshatch.data.data_settings import FederationSettings
from crosshatch.runs.train import train
from crosshatch.simulator.simulator import Simulator
from crosshatch.task.build_task import ModelSettings, build_task
from tests.support.run_configs import MakeConfig
from tests.support.training import lines

Sections = dict[str, dict[str, Any]]

LINEAR: Sections = {}
# Half images of 8 x 4 pixels, and ten columns folded into five points in time of two.
CNN: Sections = {
    "data": {"name": "digits", "limit": 300},
    "federation": {"silos": [{"name": "a"}, {"name": "b"}], "split": "halves"},
    "model": {"block": "cnn", "channels": 4, "dense": 8},
    "evaluate": {"targets": []},
}
LSTM: Sections = {"model": {"block": "lstm", "hidden": [6], "steps": 5}}
CASES = {
    "linear": (LINEAR, "auto"),
    "cnn": (CNN, "auto"),
    "lstm, stacked": (LSTM, "stacked"),
    "lstm, in a loop": (LSTM, "loop"),
    "cnn with a head": (CNN | {"model": CNN["model"] | {"fusion": "head", "outputs": 5}}, "auto"),
}


@pytest.mark.parametrize("local_steps", [1, 4])
@pytest.mark.parametrize("name", CASES)
def test_two_threads_agree_with_one(make_config: MakeConfig, tmp_path: Path, name: str, local_steps: int) -> None:
    sections, strategy = CASES[name]
    before = torch.get_num_threads()
    for threads in (1, 2):
        config = make_config(
            **sections, algorithm={"local_steps": local_steps}, run={"threads": threads, "strategy": strategy}
        )
        train(config, out=tmp_path / str(threads))
    torch.set_num_threads(before)
    rows = lines(tmp_path / "1")
    for one, two in zip(rows, lines(tmp_path / "2"), strict=True):
        assert one == pytest.approx(two, rel=1e-5)
    assert rows[-1]["train_loss"] < rows[0]["train_loss"]  # something was learned, so there was something to compare
    for silo in ("a", "b"):
        models = [load_file(tmp_path / threads / "model" / f"{silo}.safetensors") for threads in ("1", "2")]
        for key, weights in models[0].items():
            torch.testing.assert_close(models[1][key], weights, rtol=1e-5, atol=1e-6)


SELECTING = {"share": "ef(topk(0.2))", "average": "ef(topk(0.1), accumulate)"}


@pytest.mark.parametrize("codecs", [{}, SELECTING, {"share": SELECTING["share"]}])
@pytest.mark.parametrize("sections", [CNN, LSTM])
def test_a_loop_is_the_same_for_any_number_of_threads(
    make_config: MakeConfig, tmp_path: Path, sections: Sections, codecs: dict[str, str]
) -> None:
    before = torch.get_num_threads()
    for threads in (1, 2):
        run = {"threads": threads, "strategy": "loop"}
        train(make_config(**sections, codecs=codecs, run=run), out=tmp_path / str(threads))
    torch.set_num_threads(before)
    assert lines(tmp_path / "1") == lines(tmp_path / "2")
    for silo in ("a", "b"):
        one, two = (load_file(tmp_path / threads / "model" / f"{silo}.safetensors") for threads in ("1", "2"))
        assert all(torch.equal(one[key], two[key]) for key in one)


@pytest.mark.parametrize("drawn", [None, 150])
def test_a_class_mean_is_the_same_with_two_threads_to_the_last_bit(drawn: int | None) -> None:
    federation = FederationSettings(silos=2, common=100, labels="silo1")
    data = federate(load_dataset("breast_cancer"), federation, seed=1)
    alone = data.alone
    assert alone is not None
    many = replace(alone, x=alone.x.repeat(60, 1), y=alone.y.repeat(60))  # enough for torch to divide the work
    data = replace(data, alone=many)
    model = ModelSettings("mlp", hidden=(64,), fusion="transfer", mean_samples=None if drawn is None else 60 * drawn)
    before, found = torch.get_num_threads(), []
    for threads in (1, 2):
        torch.set_num_threads(threads)
        simulator = Simulator(data, build_task(data, model, seed=1), FedBCD(3, 0.1), threads=threads)
        found.append([simulator.weights])
        for _ in range(3):
            simulator.run_round()
            found[-1].append(simulator.weights)
    torch.set_num_threads(before)
    for one, two in zip(*found, strict=True):
        assert all(torch.equal(mine, theirs) for mine, theirs in zip(one, two, strict=True))
