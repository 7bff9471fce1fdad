"""Transfer from config to directory: files, resuming bit for bit, and scores of B's rows by B's data alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch

from crosshatch import load_run
from crosshatch.errors import ConfigError, CrosshatchError, DivergenceError, ModelError, RunError
from crosshatch.runs.config import Config, decode_config
from crosshatch.runs.planning.plan import make_plan
from crosshatch.runs.prepare import prepare
from crosshatch.runs.train import train
from tests.support.training import StopAt, lines, model
from tests.support.transfer_runs import ALGORITHMS, config


@pytest.mark.parametrize("labels", ["silo1", "shared"])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_stopped_and_resumed_is_the_same(tmp_path: Path, algorithm: str, labels: str) -> None:
    chosen = config(algorithm, federation={"labels": labels})
    train(chosen, out=tmp_path / "whole")
    train(chosen, out=tmp_path / "cut", watcher=StopAt(3))
    train(chosen, out=tmp_path / "cut", resume=True)
    assert lines(tmp_path / "whole") == lines(tmp_path / "cut")
    assert model(tmp_path / "whole") == model(tmp_path / "cut")


def test_the_model_is_what_b_needs(tmp_path: Path) -> None:
    train(config(), out=tmp_path / "run")
    run = load_run(tmp_path / "run")
    assert run.silos == ("silo2",)
    files = {path.name for path in (tmp_path / "run" / "model").iterdir()}
    assert files == {
        "head.safetensors",
        "model.json",
        *(f"silo{j}.{e}" for j in (1, 2) for e in ("json", "safetensors")),
    }
    for kept in ("silo1.json", "silo1.safetensors"):
        (tmp_path / "run" / "model" / kept).unlink()
    predictions = load_run(tmp_path / "run").predict()
    test = prepare(config(), folder=None).simulator.data
    right = (predictions.classes == np.array(test.class_names)[test.y_test.long().numpy()]).mean()
    assert right == pytest.approx(lines(tmp_path / "run")[-1]["accuracy"])


def test_rows_of_b_alone_are_scored_with_its_own_file(tmp_path: Path) -> None:
    """Two files with 30 ids in common; B's other rows are those to be scored."""
    rng = np.random.default_rng(8)
    hidden = rng.normal(size=120)
    a = {"id": np.arange(70), "a1": hidden[:70] + 0.1 * rng.normal(size=70), "y": (hidden[:70] > 0).astype(int)}
    pl.DataFrame(a).write_csv(tmp_path / "a.csv")
    b = pl.DataFrame({"id": np.arange(40, 120), "b1": hidden[40:] + 0.1 * rng.normal(size=80)})
    b.write_csv(tmp_path / "b.csv")
    b.filter(pl.col("id") >= 70).write_csv(tmp_path / "new.csv")
    silos = [{"name": s, "path": str(tmp_path / f"{s}.csv")} for s in ("a", "b")]
    chosen = config(
        data={"name": None, "id": "id", "label": "y"},
        federation={"common": "all", "silos": silos, "labels": "a"},
        model={"mean_samples": None},
        run={"rounds": 40},
    )
    train(chosen, out=tmp_path / "run")
    found = load_run(tmp_path / "run").predict(tmp_path / "new.csv")
    assert found.ids.tolist() == list(range(70, 120))
    assert found.classes is not None
    assert (found.classes.astype(int) == (hidden[70:] > 0)).mean() > 0.9


def test_the_score_is_the_class_mean_times_the_embedding(tmp_path: Path) -> None:
    train(config(), out=tmp_path / "run")
    run = load_run(tmp_path / "run")
    rows = run.prepare()
    mean = run.model.fusion.module
    assert mean is not None
    embedding = run.model.parts[0].embed(rows.xs[0])
    assert torch.allclose(run.model.scores(rows.xs)[:, 0], embedding @ next(mean.parameters()))
    assert torch.allclose(run.module()(*rows.xs), run.model.scores(rows.xs))


def test_the_summary_counts_what_the_sides_tell(tmp_path: Path) -> None:
    train(config(), out=tmp_path / "run")
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert set(summary["bytes_by_exchange"]) == {"share", "derivatives"}
    assert set(summary["bytes_by_link"]) == {"hub-hub up", "hub-hub down"}
    # the silo with labels goes through 200 samples more at every step
    assert summary["cost"]["silo1"]["step_flops"] > 3 * summary["cost"]["silo2"]["step_flops"]


def test_a_step_size_may_be_tried_out(tmp_path: Path) -> None:
    algorithm = {"name": "fedbcd", "local_steps": 2, "step_size": "measure"}
    train(_with_algorithm(algorithm), out=tmp_path / "run")
    assert lines(tmp_path / "run")[-1]["auc"] > 0.5


def _with_algorithm(algorithm: dict[str, Any]) -> Config:
    return decode_config({
        "data": {"name": "breast_cancer"},
        "federation": {"common": 60, "silos": 2},
        "model": {"fusion": "transfer", "block": "mlp", "hidden": [6], "outputs": 5},
        "algorithm": algorithm,
        "run": {"rounds": 3, "threads": 1, "name": "transfer"},
    })  # fmt: skip


REFUSED: dict[str, tuple[dict[str, Any], type[CrosshatchError], str]] = {
    "three silos": ({"federation": {"silos": 3}}, ModelError, "between two silos, this federation has 3"),
    "one silo": ({"federation": {"silos": 1, "labels": "shared"}}, ModelError, "has 1: name two silos"),
    "no common samples": ({"federation": {"common": 0}}, CrosshatchError, "without common samples"),
    "too many": ({"federation": {"common": 4000}}, CrosshatchError, "there are 455 training samples"),
    "more than two classes": ({"data": {"name": "wine"}, "federation": {"common": 30}}, ModelError, "of two classes"),
    "a quantity": ({"data": {"name": "diabetes"}}, ModelError, "of two classes"),
    "widths that differ": ({"model": {"blocks": {"silo2": {"outputs": 4}}}}, ModelError, "to the same value in both"),
    "clients": ({"federation": {"clients": 2}}, ConfigError, "one client per silo"),
    "weights": ({"model": {"class_weights": "balanced"}}, ModelError, "leave class and sample weights out"),
    "another loss": ({"model": {"loss": "squared"}}, ModelError, "'squared' is for regression"),
    "another holder": ({"model": {"head_holder": "silo2"}}, ModelError, "set model.head_holder = 'silo1'"),
    "a large draw": ({"model": {"mean_samples": 456}}, ModelError, "has 455 training samples"),
    "alignment": ({"model": {"alignment": "angle"}}, CrosshatchError, "alignment"),
    "weight of it": ({"model": {"alignment_weight": -1.0}}, CrosshatchError, "gamma must be a finite number"),
    "no draw": ({"model": {"mean_samples": 0}}, CrosshatchError, "draw at least 1 sample"),
    "a head's settings": ({"model": {"head": "mlp"}}, ModelError, "no effect without a head"),
    "no transfer": ({"model": {"fusion": "head", "mean_samples": None}}, ConfigError, "needs both, or neither"),
    "no common": ({"federation": {"common": None}}, ConfigError, "needs both, or neither"),
    "stacked": ({"run": {"strategy": "stacked"}}, ConfigError, "is not for transfer: use 'auto' or 'loop'"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_leaves_nothing(tmp_path: Path, name: str) -> None:
    sections, kind, message = REFUSED[name]
    with pytest.raises(kind, match=message):
        train(config(**sections), out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_settings_of_transfer_are_refused_without_it(tmp_path: Path) -> None:
    plain = {"fusion": "sum", "mean_samples": None, "outputs": None, "alignment": "distance"}
    with pytest.raises(ModelError, match="is about transfer"):
        train(config(model=plain, federation={"common": None}), out=tmp_path / "run")


@pytest.mark.parametrize("algorithm", [{"name": "tdcd"}, {"name": "hsgd"}, {"name": "fedavg"}])
def test_algorithms_with_other_tiers_are_refused(tmp_path: Path, algorithm: dict[str, Any]) -> None:
    with pytest.raises(CrosshatchError, match="transfer between two silos on V alone: use fedsgd, fedbcd or abcd"):
        train(_with_algorithm(algorithm), out=tmp_path / "run")


def test_an_adaptive_step_size_is_refused(tmp_path: Path) -> None:
    schedule = {"kind": "adaptive", "value": 0.1, "rho": 1.0, "delta_squared": 1.0, "every": 2}
    with pytest.raises(ConfigError, match="is not for transfer"):
        train(_with_algorithm({"name": "fedbcd", "step_size": schedule}), out=tmp_path / "run")


def test_a_plan_is_refused() -> None:
    with pytest.raises(ConfigError, match="a class mean ties all samples together"):
        make_plan(config())
    with pytest.raises(ConfigError, match="a class mean ties all samples together"):
        prepare(_with_algorithm({"name": "fedbcd", "step_size": "auto"}), folder=None)


def test_blocks_that_draw_random_numbers_are_refused(tmp_path: Path) -> None:
    text = (
        "import torch\nclass Dropped(torch.nn.Sequential):\n    def __init__(self, input_shape, outputs):\n"
        "        super().__init__(torch.nn.Linear(input_shape[0], outputs), torch.nn.Dropout(0.5))\n"
    )
    (tmp_path / "own.py").write_text(text)
    model = {"block": f"{tmp_path / 'own.py'}:Dropped", "hidden": None}
    with pytest.raises(ModelError, match="draws random numbers"):
        train(config(model=model), out=tmp_path / "run")


def test_a_model_without_its_class_mean_is_refused(tmp_path: Path) -> None:
    train(config(), out=tmp_path / "run")
    (tmp_path / "run" / "model" / "head.safetensors").unlink()
    with pytest.raises(RunError, match=r"head\.safetensors"):
        load_run(tmp_path / "run")


def test_who_outbids_the_other_is_told_what_to_change(tmp_path: Path) -> None:
    """A product has no lowest value."""
    algorithm = {"name": "fedbcd", "local_steps": 50, "step_size": 3.0}
    with pytest.raises(DivergenceError, match=r"or model\.alignment_weight \(now 0\.01\): a product has no lowest"):
        train(_with_algorithm(algorithm), out=tmp_path / "run")
