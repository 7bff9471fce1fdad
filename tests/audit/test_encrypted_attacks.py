"""What a silo makes of the gradients it reads in an encrypted run: everything before there was a rule, little since.

Tables are made, with labels that one silo's columns hardly tell, so that whatever comes out comes from the gradients.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from crosshatch.audit.attack_findings import AttackFindings
from crosshatch.audit.attacks import audit_attacks
from crosshatch.audit.on_labels.integer_search import search
from crosshatch.errors import ConfigError
from crosshatch.privacy.fixed_point import FixedPoint
from crosshatch.runs.config import decode_config
from crosshatch.runs.train import train
from tests.audit.random_runs import Matrix

OLD = {"draw": "anew"}
ACCEPTED = {"accept_leakage": True}


def made(rows: int, columns: int, seed: int) -> tuple[Matrix, Matrix, Matrix]:
    """The columns of a silo without labels, of one with them, and the labels."""
    draw = np.random.default_rng(seed)
    mine, theirs = draw.normal(size=(rows, columns)), draw.normal(size=(rows, 6))
    signal = 0.3 * mine[:, 0] + theirs[:, 0] - theirs[:, 1] + draw.normal(size=rows)
    return mine, theirs, (signal > 0).astype(np.float64)


def attack(folder: Path, parts: tuple[Matrix, Matrix, Matrix], **sections: Any) -> dict[str, AttackFindings]:
    mine, theirs, y = parts
    folder.mkdir(parents=True, exist_ok=True)
    names = [f"a{i}" for i in range(mine.shape[1])], [f"b{i}" for i in range(theirs.shape[1])]
    lines = [
        ",".join(map(repr, [i, *a, *b, int(c) if c.is_integer() else c]))
        for i, (a, b, c) in enumerate(zip(mine.tolist(), theirs.tolist(), y.tolist(), strict=True))
    ]
    table = folder / "table.csv"
    table.write_text("\n".join([",".join(["id", *names[0], *names[1], "label"]), *lines]) + "\n")
    silos = [{"name": name, "columns": columns} for name, columns in zip("ab", names, strict=True)]
    tables: dict[str, dict[str, Any]] = {
        "data": {"path": str(table), "id": "id", "label": "label"},
        "federation": {"labels": "b", "silos": silos},
        "algorithm": {"name": "fedbcd", "local_steps": 5, "step_size": 0.1},
        "privacy": {"encryption": "paillier", "seconds": {}},
        "run": {"name": "one", "threads": 1, "record_messages": True},
    }  # fmt: skip
    for section, keys in sections.items():
        tables[section] = tables.get(section, {}) | keys
    train(decode_config(tables), out=folder / "run")
    found = {one.attack: one for one in audit_attacks(folder / "run").findings if one.target == "labels, by a"}
    for one in found.values():
        assert one.why or any("columns alone" in name for name in one.beside), one.attack
    return found


def best(found: dict[str, AttackFindings]) -> float:
    """The best AUC of all attacks, in all rounds or in the first ones."""
    return max(value for one in found.values() for name, value in one.figures.items() if name.startswith("AUC"))


def beyond_columns(found: dict[str, AttackFindings]) -> float:
    """By how much the best figure is above what the columns alone give.

    The rule: of every attack on labels every AUC counts, after the first round, after ten and after all, labels as bits
    or not. Each stands beside the least-squares fit of the silo's columns to the true labels, batch by batch, ranked
    over the same samples: those that were in a batch until then.
    """
    above = []
    for one in found.values():
        for name, value in one.figures.items():
            if name.startswith("AUC"):
                above.append(value - one.beside[name.removesuffix(" as bits") + ", columns alone"])
    return max(above)


def test_batches_drawn_anew_give_the_labels_away(tmp_path: Path) -> None:
    changes = {"algorithm": {"batch_size": 144} | OLD, "privacy": ACCEPTED, "run": {"rounds": 50}}
    found = attack(tmp_path, made(250, 8, 1), **changes)
    kriging = found["labels by kriging over rounds"]
    assert kriging.beside["AUC, columns alone"] < 0.75
    assert kriging.figures["AUC after the first round"] < 0.8
    assert best(found) > 0.97
    assert kriging.remark == "450 equations about 200 labels, from 50 rounds"


def test_rare_labels_are_given_away_as_well(tmp_path: Path) -> None:
    """One in five: what all labels have in common says nothing of how far each is from it."""
    mine, theirs, _ = made(250, 8, 4)
    signal = 0.3 * mine[:, 0] + theirs[:, 0] - theirs[:, 1]
    rare = (signal > np.quantile(signal, 0.8)).astype(np.float64)
    changes = {"algorithm": {"batch_size": 144, "local_steps": 1} | OLD, "privacy": ACCEPTED, "run": {"rounds": 20}}
    kriging = attack(tmp_path, (mine, theirs, rare), **changes)["labels by kriging over rounds"]
    assert kriging.beside["AUC, columns alone"] < 0.75
    assert kriging.figures["AUC"] > 0.97
    assert kriging.figures["accuracy as bits"] > 0.98
    assert kriging.figures["AUC after 10 rounds"] > kriging.figures["AUC after the first round"]


def test_several_classes_are_given_away_as_well(tmp_path: Path) -> None:
    """From 60 rounds: 480 sums of each class over 200 labels. What all rounds tell is no less than the first told."""
    mine, theirs, _ = made(250, 7, 6)
    y = np.column_stack([theirs[:, 0], theirs[:, 1], 0.5 * theirs[:, 2] + 0.3 * mine[:, 0]]).argmax(axis=1)
    changes = {"algorithm": {"batch_size": 100} | OLD, "privacy": ACCEPTED, "run": {"rounds": 60}}
    found = attack(tmp_path, (mine, theirs, y.astype(np.float64)), **changes)
    kriging, joint = found["labels by kriging over rounds"], found["labels by a joint fit"]
    assert kriging.beside["accuracy, columns alone"] < 0.65
    assert kriging.figures["accuracy"] > 0.9
    assert kriging.figures["accuracy as bits"] > 0.9
    assert joint.figures["accuracy"] > 0.9


def test_real_labels_are_given_away_as_well(tmp_path: Path) -> None:
    """Also where the silo's columns tell much of them: sums are large then, and labels no larger than they are."""
    mine, theirs, _ = made(250, 8, 7)
    y = mine[:, 0] + 0.5 * mine[:, 1] + theirs[:, 0] + 0.3 * theirs[:, 1]
    changes = {"algorithm": {"batch_size": 100, "local_steps": 1, "step_size": 0.02} | OLD, "privacy": ACCEPTED}
    found = attack(tmp_path, (mine, theirs, y), model={"loss": "squared"}, run={"rounds": 40}, **changes)
    kriging = found["labels by kriging over rounds"]
    assert kriging.beside["R^2, columns alone"] < 0.65
    assert kriging.figures["R^2"] > 0.8


def test_batches_drawn_anew_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="every new batch tells more about the same labels"):
        attack(tmp_path, made(800, 8, 1), algorithm={"batch_size": 512} | OLD, run={"rounds": 5})


def within_the_rule(folder: Path, seed: int, rounds: int) -> None:
    algorithm = {"batch_size": 512, "division_seed": seed}  # given: a test is the same every time
    found = attack(folder, made(1300, 8, seed), algorithm=algorithm, run={"rounds": rounds, "seed": seed})
    assert beyond_columns(found) <= 0.02
    kriging = found["labels by kriging over rounds"]  # more rounds tell an attack no less
    assert kriging.figures["AUC"] >= kriging.beside["AUC, columns alone"] - 0.02


def test_a_partition_tells_no_more_than_the_columns(tmp_path: Path) -> None:
    within_the_rule(tmp_path, 200, 12)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [200, 201, 202])
def test_a_partition_tells_no_more_in_400_rounds(tmp_path: Path, seed: int) -> None:
    within_the_rule(tmp_path, seed, 400)


def test_samples_alone_in_a_direction_are_told(tmp_path: Path) -> None:
    mine, theirs, y = made(250, 8, 2)
    mine[:, :6] = 0
    mine[np.arange(0, 240, 10), np.arange(24) % 6] = 1  # four rows each, of which a batch often has one
    changes = {"algorithm": {"batch_size": 60} | OLD, "privacy": ACCEPTED, "run": {"rounds": 20}}
    alone = attack(tmp_path, (mine, theirs, y), **changes)["labels of samples alone in a direction"]
    assert alone.figures["samples"] >= 10
    assert alone.figures["accuracy"] == 1


@pytest.mark.parametrize("recorded", [True, False])
def test_gradients_of_an_encrypted_transfer_are_sums_over_labels(tmp_path: Path, recorded: bool) -> None:
    """160 labels, and 6 x 9 + 7 sums over them in every local step: after two rounds of two steps there are more."""
    changes = {
        "federation": {"common": "all"},
        "model": {"fusion": "transfer", "loss": "taylor_logistic", "block": "mlp", "hidden": [6], "outputs": 3}
        | {"alignment_weight": 0.001},
        "algorithm": {"local_steps": 2, "step_size": 0.1}, "privacy": ACCEPTED,
        "run": {"rounds": 2, "record_messages": recorded},
    }  # fmt: skip
    found = attack(tmp_path, made(200, 8, 5), **changes)["labels by sums over rounds"]
    assert found.remark == "300 sums over 160 labels, from 4 local steps"  # 6 x 9 + 3 x 7 parameters each
    assert found.beside["AUC, columns alone"] < 0.75
    assert found.figures["AUC"] > 0.85
    assert found.figures["accuracy as bits"] > 0.99
    with pytest.raises(ConfigError, match="would learn its gradients of 160 samples, from which labels can be worked"):
        attack(tmp_path / "rule", made(200, 8, 5), **changes | {"privacy": {}})


def test_what_is_not_labels_in_sums_is_as_large_as_is_likeliest(tmp_path: Path) -> None:
    """In single precision, with a block whose derivatives have few directions, rounding is far above its least."""
    changes = {
        "federation": {"common": "all"},
        "model": {"fusion": "transfer", "loss": "taylor_logistic", "block": "mlp", "hidden": [5], "outputs": 3}
        | {"alignment_weight": 0.01},
        "algorithm": {"local_steps": 2, "step_size": 0.1}, "privacy": ACCEPTED, "run": {"rounds": 2},
    }  # fmt: skip
    found = attack(tmp_path, made(260, 8, 11), **changes)["labels by sums over rounds"]
    assert found.figures["AUC"] > found.beside["AUC, columns alone"] + 0.1


def test_small_batches_by_integer_search(tmp_path: Path) -> None:
    found = attack(tmp_path, made(45, 2, 3), privacy=ACCEPTED, run={"rounds": 1})["labels by integer search"]
    assert found.figures["accuracy"] == 1
    assert found.remark == "36 labels of the first batch; sums that 1 choices of labels explain"
    with pytest.raises(ConfigError, match="at least 512"):
        attack(tmp_path / "rule", made(45, 2, 3), run={"rounds": 1})


def exact_sums(rows: Matrix, y: npt.NDArray[np.int64], precision: str) -> tuple[Matrix, int] | None:
    """What the search finds in the sums of rows at scores of zero."""
    exact = np.round(rows * 2**24) / 2**24
    means = (exact.T @ (0.5 - y) / len(y)).astype(precision).astype(np.float64)
    return search(rows, means, FixedPoint(24, 16), precision)


@pytest.mark.parametrize(
    ("count", "columns", "precision"),
    [
        (60, 10, "float32"),
        pytest.param(48, 2, "float32", marks=pytest.mark.slow),
        pytest.param(48, 2, "float64", marks=pytest.mark.slow),
        pytest.param(100, 24, "float32", marks=pytest.mark.slow),
    ],
)
def test_labels_by_integer_search(count: int, columns: int, precision: str) -> None:
    draw = np.random.default_rng(0)
    rows = np.hstack([draw.normal(size=(count, columns)), np.ones((count, 1))])
    y = draw.integers(0, 2, count)
    found = exact_sums(rows, y, precision)
    assert found is not None
    assert found[1] == 1
    assert np.array_equal(found[0], y)


@pytest.mark.parametrize("columns", [1, 4])
def test_of_60_labels_few_sums_tell_too_little(columns: int) -> None:
    """Fewer digits than labels, or too few more for a lattice to have no other short vectors."""
    draw = np.random.default_rng(1)
    assert exact_sums(draw.normal(size=(60, columns)), draw.integers(0, 2, 60), "float32") is None
