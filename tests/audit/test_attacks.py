"""The attacks: each recovers what it can where nothing is hidden, and says so where it does not apply."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crosshatch.audit.attack_findings import AttackFindings
from crosshatch.audit.attacks import Attacks, audit_attacks
from crosshatch.audit.on_rows.completion import SentDirections
from crosshatch.audit.on_rows.decoder_attack import decode_often
from crosshatch.audit.theorem1 import audit_theorem1
from crosshatch.errors import ConfigError, RunError
from crosshatch.runs.config import decode_config
from crosshatch.runs.train import train
from tests.audit.random_runs import Matrix


def attack(out: Path, **sections: dict[str, Any]) -> Attacks:
    tables: dict[str, dict[str, Any]] = {
        "data": {"name": "breast_cancer"},
        "federation": {"silos": [{"name": "a", "groups": ["mean"]}, {"name": "b", "groups": ["error", "worst"]}]},
        "algorithm": {"name": "fedbcd", "batch_size": 64, "local_steps": 5},
        "run": {"name": "one", "rounds": 30, "threads": 1, "record_messages": True},
    }
    for section, keys in sections.items():
        tables[section] = {k: v for k, v in (tables.get(section, {}) | keys).items() if v is not None}
    train(decode_config(tables), out=out)
    found = audit_attacks(out)
    for one in found.findings:
        assert one.why or (one.knows and one.lowers and any("chance" in name for name in one.beside)), one.attack
        if one.figures and one.target.startswith("labels"):
            assert any("columns alone" in name for name in one.beside), one.attack
    return found


def by_target(found: Attacks, name: str) -> dict[str, AttackFindings]:
    return {one.target: one for one in found.findings if one.attack == name}


def test_derivatives_of_linear_blocks_tell_all_labels(tmp_path: Path) -> None:
    found = by_target(attack(tmp_path / "run", federation={"labels": "b"}), "labels by derivatives")["labels, by a"]
    assert found.figures["accuracy by sign"] == 1
    assert found.figures["AUC by cosine to a known one"] == 1
    assert 0 < found.figures["AUC by norm"] < 1
    assert found.remark.startswith("1,920 derivatives")


def test_behind_a_head_directions_tell_labels(tmp_path: Path) -> None:
    model = {"block": "mlp", "fusion": "head", "outputs": 8}
    found = attack(tmp_path / "run", federation={"labels": "b"}, model=model)
    figures = by_target(found, "labels by derivatives")["labels, by a"].figures
    assert "accuracy by sign" not in figures
    assert figures["AUC by cosine to a known one"] > 0.95
    clusters = by_target(found, "labels by clusters of directions")["labels, by a"]
    assert clusters.figures["accuracy up to the names of the classes"] > 0.95
    assert clusters.beside["accuracy, chance"] == pytest.approx(0.626, abs=0.01)


def test_several_classes_by_the_only_negative_number(tmp_path: Path) -> None:
    found = attack(tmp_path / "run", data={"name": "wine"}, federation={"silos": 2, "labels": "silo2"})
    assert by_target(found, "labels by derivatives")["labels, by silo1"].figures == {"accuracy by sign": 1}


def test_several_classes_behind_a_head_by_clusters(tmp_path: Path) -> None:
    model = {"block": "mlp", "fusion": "head", "outputs": 8}
    found = attack(
        tmp_path / "run", data={"name": "wine"}, federation={"silos": 2, "labels": "silo2"}, model=model,
        algorithm={"batch_size": None}, run={"rounds": 2},
    )  # fmt: skip
    figures = by_target(found, "labels by clusters of directions")["labels, by silo1"].figures
    assert figures == {"accuracy up to the names of the classes": 1, "accuracy by one known label per class": 1}


def test_classes_are_tracked_over_rounds_of_small_batches(tmp_path: Path) -> None:
    """Ten classes in batches of 100 of 1,438: k-means that is tracked over rounds gets 0.939 of the labels."""
    found = attack(
        tmp_path / "run", data={"name": "digits"}, federation={"silos": 2, "labels": "silo2"},
        model={"block": "mlp", "fusion": "head", "outputs": 8}, algorithm={"batch_size": 100}, run={"rounds": 40},
    )  # fmt: skip
    figures = by_target(found, "labels by clusters of directions")["labels, by silo1"].figures
    assert figures["accuracy by one known label per class"] > 0.96
    assert figures["accuracy by one known label per class, of the first round's samples"] == 1


def test_embeddings_of_all_rounds_are_decoded_and_wide_ones_warned_of(tmp_path: Path) -> None:
    model = {"block": "mlp", "fusion": "head"}
    wide = by_target(attack(tmp_path / "wide", model=model | {"outputs": 32}), "rows by a decoder")["a"]
    narrow = by_target(attack(tmp_path / "narrow", model=model | {"outputs": 2}), "rows by a decoder")["a"]
    assert list(wide.figures.values())[-1] > 0.9
    assert list(narrow.figures.values())[-1] > 0.4
    assert "as wide as its features (32 for 10)" in wide.warning
    assert narrow.warning == ""
    lowest, median, highest = (
        narrow.figures[f"R^2 with 10 known rows{of}"] for of in (", lowest of 9", "", ", highest of 9")
    )
    assert lowest < median < highest


def test_ten_known_rows_give_all_others_of_a_linear_silo(tmp_path: Path) -> None:
    silos = [{"name": "a", "columns": ["mean radius", "mean texture", "mean area"]}, {"name": "b", "groups": ["worst"]}]
    whole = {"batch_size": None}
    found = attack(tmp_path / "run", federation={"silos": silos}, algorithm=whole, run={"precision": "float64"})
    assert by_target(found, "rows by a decoder")["a"].figures["R^2 with 10 known rows"] > 1 - 1e-6


def test_breast_cancer_encrypted_and_drawn_anew(tmp_path: Path) -> None:
    """The figures that docs/howto/audit.md and docs/howto/encryption.md give."""
    found = attack(
        tmp_path / "run",
        federation={"labels": "b"},
        algorithm={"batch_size": 256, "draw": "anew", "step_size": 0.1},
        privacy={"encryption": "paillier", "seconds": {}, "accept_leakage": True},
        run={"rounds": 60, "precision": "float64"},
    )
    kriging = by_target(found, "labels by kriging over rounds")["labels, by a"]
    assert kriging.figures["AUC"] > 0.9995
    assert kriging.beside["AUC, columns alone"] == pytest.approx(0.986, abs=0.001)
    assert by_target(found, "labels by a joint fit")["labels, by a"].figures["AUC"] > 0.9995
    assert by_target(found, "rows by a decoder")["a"].figures["R^2 with 10 known rows"] > 0.99


@pytest.mark.parametrize("block", ["linear", "mlp"])
def test_the_gradient_of_one_sample_is_its_row(tmp_path: Path, block: str) -> None:
    found = by_target(attack(tmp_path / "run", model={"block": block}), "gradient of one sample")
    for one in found.values():
        assert one.figures["share recovered"] == 1
        assert one.figures["median error"] < 1e-5
        assert "no block leaves the silo" in one.remark


def test_gradients_travel_where_clients_are_averaged(tmp_path: Path) -> None:
    found = attack(tmp_path / "run", algorithm={"name": "tdcd"}, federation={"clients": 50})
    (one, _) = by_target(found, "gradient of one sample").values()
    assert "clients send their blocks to the hub, the fewest samples of a client are 9" in one.remark


def test_what_does_not_apply_says_why(tmp_path: Path) -> None:
    model = {"blocks": {"a": {"bias": False}}}
    found = attack(tmp_path / "run", model=model, run={"record_messages": False})
    assert by_target(found, "labels by derivatives")["labels"].why == "labels are shared: every silo has them"
    assert "up to length" in by_target(found, "gradient of one sample")["a"].why
    held = attack(tmp_path / "held", federation={"labels": "b"}, run={"record_messages": False})
    assert by_target(held, "labels by derivatives")["labels, by a"].figures["accuracy by sign"] == 1  # run again
    assert "sends no embeddings" in by_target(held, "rows by a decoder")["b"].why
    lstm = attack(tmp_path / "lstm", model={"block": "lstm", "steps": 5, "hidden": [4]}, run={"rounds": 2})
    assert "does not begin with a linear layer" in by_target(lstm, "gradient of one sample")["a"].why


def test_regression_has_no_classes_to_tell(tmp_path: Path) -> None:
    found = attack(tmp_path / "run", data={"name": "diabetes"}, federation={"silos": 2, "labels": "silo2"})
    (one,) = by_target(found, "labels by derivatives").values()
    assert list(one.figures) == ["R^2 of the first"]


def test_findings_are_written(tmp_path: Path) -> None:
    found = attack(tmp_path / "run")
    written = json.loads((tmp_path / "run" / "audit_attacks.json").read_text())
    assert [one["attack"] for one in written["findings"]] == [one.attack for one in found.findings]
    assert written["rounds"] == 30


def transfer(out: Path, **sections: dict[str, Any]) -> Attacks:
    federation = {"silos": [{"name": "a", "groups": ["error", "worst"]}, {"name": "b", "groups": ["mean"]}]}
    model = {"fusion": "transfer", "block": "mlp", "hidden": [8], "outputs": 4} | sections.pop("model", {})
    return attack(
        out, federation=federation | {"labels": "a", "common": 300}, model=model,
        algorithm={"batch_size": None, "local_steps": 2}, **sections,
    )  # fmt: skip


def test_components_of_a_transfer_tell_all_labels_and_rows(tmp_path: Path) -> None:
    found = transfer(tmp_path / "run")
    labels = by_target(found, "labels by components")["labels, by b"]
    assert labels.figures == {"accuracy up to which is which": 1}
    assert labels.remark == "300 samples"
    rows = by_target(found, "rows by a decoder")
    assert {name: list(one.figures.values())[-1] > 0.5 for name, one in rows.items()} == {"a": True, "b": True}
    with pytest.raises(RunError, match=r"model.fusion = 'transfer': scores must be the sum"):
        audit_theorem1(tmp_path / "run")


def test_a_graph_is_refused(tmp_path: Path) -> None:
    tables: dict[str, Any] = {
        "data": {"name": "breast_cancer"}, "federation": {"silos": 4}, "algorithm": {"name": "stcd"},
        "run": {"name": "one", "rounds": 2, "threads": 1},
    }  # fmt: skip
    train(decode_config(tables), out=tmp_path / "run")
    with pytest.raises(RunError, match=r"'stcd' runs on a graph"):
        audit_attacks(tmp_path / "run")
    tables["run"]["record_messages"] = True
    with pytest.raises(ConfigError, match=r"STCD sends along a graph"):
        train(decode_config(tables), out=tmp_path / "other")


def decoded(seen: Matrix, rows: Matrix, known: int, *, linear: bool = False) -> float:
    ones, nothing = np.ones(seen.shape[1]), np.zeros(len(seen))
    sent = SentDirections(np.arange(len(seen)), seen, ones, nothing, nothing.astype(np.int64), 1.0)
    return float(decode_often(sent, rows, known, draws=1, linear=linear, seed=0)[0])


def test_a_linear_map_is_decoded_and_noise_is_not() -> None:
    draw = np.random.default_rng(0)
    rows = draw.normal(size=(600, 4))
    assert decoded(rows @ draw.normal(size=(4, 6)), rows, 300) > 1 - 1e-6
    assert decoded(draw.normal(size=(600, 6)), rows, 300) < 0.05


def test_known_rows_that_leave_a_column_out_do_not_spoil_the_others() -> None:
    """A column that is zero for all known rows: what fits these exactly may be far off where it is not."""
    draw = np.random.default_rng(3)
    rows = draw.normal(size=(1000, 5))
    rows[:, 4] = np.where(np.arange(1000) < 900, 0, 20 * draw.exponential(size=1000))
    seen = np.linalg.svd(rows @ draw.normal(size=(5, 5)) + 1e-7 * draw.normal(size=(1000, 5)), full_matrices=False)[0]
    assert decoded(seen * np.sqrt(1000), rows, 10, linear=True) > 0.99


def test_a_single_known_row_that_differs_does_not_hide_what_is_exact() -> None:
    """Whoever leaves it out cannot foretell it, by no decoder; in the other columns one of them is exact."""
    draw = np.random.default_rng(3)
    rows = draw.normal(size=(600, 4))
    rows[:, 3] = draw.random(600) < 0.1
    rows[:10, 3] = np.arange(10) == 0
    turned = np.column_stack([rows, np.ones(600)]) @ draw.normal(size=(5, 5))
    assert decoded(turned, rows, 10, linear=True) > 0.99


def test_a_column_that_only_known_rows_have_says_nothing() -> None:
    """The corner of an image that is black in all but a few: no R^2 of it, and the others count."""
    draw = np.random.default_rng(4)
    rows = draw.normal(size=(400, 4))
    rows[:, 3] = np.arange(400) < 5
    assert decoded(rows[:, :3] @ draw.normal(size=(3, 3)), rows, 200) > 0.999


def test_fewer_known_rows_than_columns_do_where_columns_are_not_gaussian() -> None:
    draw = np.random.default_rng(0)
    rows = draw.laplace(size=(3000, 12))
    seen = rows @ np.linalg.qr(draw.normal(size=(12, 12)))[0]
    assert decoded(seen, rows, 10, linear=True) > 0.9
    assert decoded(seen, rows, 10) < 0.8


def test_a_row_far_beyond_all_known_ones_is_decoded_by_what_is_exact() -> None:
    """A curve that fits all known rows nearly ends flat beyond them; a line that fits them exactly goes on."""
    draw = np.random.default_rng(5)
    rows = draw.normal(size=(720, 3))
    rows[500] = [100, 0, 0]
    assert decoded(rows @ draw.normal(size=(3, 3)), rows, 360, linear=True) > 0.999


def test_a_curved_map_is_decoded() -> None:
    draw = np.random.default_rng(0)
    rows = draw.normal(size=(1500, 2))
    seen = np.tanh(rows @ draw.normal(size=(2, 8))) ** 2
    seen = np.hstack([seen, np.tanh(rows.sum(axis=1, keepdims=True))])
    assert decoded(seen, rows, 1000) > 0.8
