"""Theorem 1 on many runs: other data with the same messages, by simulator and by plain loops; and where it fails."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from crosshatch.audit.audited_run import AuditedRun, open_run
from crosshatch.audit.other_data import find_other_data
from crosshatch.audit.theorem1 import audit_theorem1
from crosshatch.errors import RunError
from crosshatch.protocol.batches import Ids
from tests.audit.random_runs import Matrix, Shape, make_run, naive, random_shape


def rows_of(run: AuditedRun) -> list[Matrix]:
    return [run.features(j).double().numpy() for j in range(len(run.task.blocks))]


def starts_of(run: AuditedRun) -> list[tuple[Matrix, float]]:
    found = []
    for block in run.task.blocks:
        weight, *bias = [p.detach().double().numpy() for p in block.parameters()]
        found.append((weight[0], float(bias[0][0]) if bias else 0.0))
    return found


def ids_of(run: AuditedRun) -> list[Ids]:
    by_round = {heard.round: heard.ids for heard in run.messages}
    return [by_round[r] for r in range(run.rounds)]


@pytest.mark.parametrize("seed", range(20))
def test_other_data_give_the_same_messages(seed: int, tmp_path: Path) -> None:
    shape = random_shape(seed)
    out = make_run(shape, tmp_path)
    found = audit_theorem1(out)
    assert [one.features for one in found.silos] == list(shape.columns)
    assert found.reproduced <= 1e-9
    for one in found.silos:
        assert one.same_messages
        assert one.message_difference is not None
        assert one.message_difference <= 1e-9
        assert one.data_difference is not None
        assert one.data_difference > 0.5
        assert one.others == ("one" if one.features == 2 and not shape.zero else "infinitely many")


@pytest.mark.parametrize("seed", range(20))
def test_plain_loops_send_the_recorded_messages_from_both_data_sets(seed: int, tmp_path: Path) -> None:
    shape = random_shape(seed)
    with open_run(make_run(shape, tmp_path)) as run:
        xs, start, ids, y = rows_of(run), starts_of(run), ids_of(run), run.data.y_train.double().numpy()
        recorded = [(m.round, m.exchange, m.use, m.sender, m.values[:, 0].numpy()) for m in run.messages]
    silo = seed % len(xs)
    other = find_other_data(xs[silo], start[silo][0][None], seed=seed)
    assert other is not None
    assert np.allclose(other.turn @ other.turn.T, np.eye(len(other.turn)), atol=1e-12)
    assert np.allclose(start[silo][0] @ other.turn, start[silo][0], atol=1e-12)
    assert np.linalg.norm(other.rows - xs[silo]) > 0.5 * np.linalg.norm(xs[silo])
    turned = [other.rows if j == silo else x for j, x in enumerate(xs)]
    for rows in (xs, turned):
        said = naive(shape, rows, y, start, ids)
        assert [one[:4] for one in said] == [one[:4] for one in recorded]
        assert max(float(abs(a[4] - b[4]).max()) for a, b in zip(said, recorded, strict=True)) <= 1e-9


def test_a_private_start_leaves_more_freedom(tmp_path: Path) -> None:
    out = make_run(Shape(columns=(2, 3), zero=False), tmp_path)
    known, private = audit_theorem1(out), audit_theorem1(out, private_start=True)
    assert [one.others for one in known.silos] == ["one", "infinitely many"]
    assert [one.others for one in private.silos] == ["infinitely many", "infinitely many"]
    assert all(one.same_messages and (one.data_difference or 0) > 0.5 for one in private.silos)


def test_columns_may_keep_their_means_and_deviations() -> None:
    draw = np.random.default_rng(3)
    x = draw.normal(size=(200, 7)) @ draw.normal(size=(7, 7)) + draw.normal(size=7)
    other = find_other_data(x, draw.normal(size=(1, 7)), seed=0)
    assert other is not None
    assert other.statistics_kept
    assert np.allclose(other.rows.mean(0), x.mean(0), atol=1e-9)
    assert np.allclose(other.rows.std(0), x.std(0), rtol=1e-7)


def test_two_columns_cannot_keep_theirs_but_by_sign_and_order() -> None:
    draw = np.random.default_rng(3)
    x = draw.normal(size=(500, 2)) @ np.array([[1.0, 0.6], [0.0, 0.8]])
    x = (x - x.mean(0)) / x.std(0)
    other = find_other_data(x, np.zeros((1, 2)), seed=0)
    assert other is not None
    if other.statistics_kept:
        assert np.allclose(np.sort(abs(other.turn), axis=None), [0, 0, 1, 1], atol=1e-6)


def test_rows_along_the_weights_are_not_called_different() -> None:
    weights = np.array([[1.0, 2.0]])
    x = np.outer(np.linspace(-1, 1, 50), weights[0]) + 0.01 * np.random.default_rng(0).normal(size=(50, 2))
    other = find_other_data(x, weights, seed=0)
    assert other is not None
    assert other.free == 1
    assert other.difference(x) < 0.5


def test_one_feature_is_recovered(tmp_path: Path) -> None:
    found = audit_theorem1(make_run(Shape(columns=(1, 3), zero=False, rounds=10), tmp_path)).silos[0]
    assert found.others == "none"
    assert not found.same_messages
    errors = {(one.condition, one.knows): one.error for one in found.recoveries}
    assert (errors["weights known", "its weights in every round"] or 1) < 1e-9
    assert (errors["one feature", "nothing else"] or 1) < 1e-9  # up to scale and shift
    # the rows that others know to be standardised are those of training and test together with their deviation
    assert (errors["one feature", "that it is standardised"] or 1) < 1e-5


def test_one_feature_is_recovered_from_small_batches(tmp_path: Path) -> None:
    shape = Shape(columns=(1, 3), rounds=40, size=12, samples=50)
    found = audit_theorem1(make_run(shape, tmp_path)).silos[0]
    (scale_free,) = [one for one in found.recoveries if one.knows == "nothing else"]
    assert scale_free.error is not None
    assert scale_free.error < 1e-6
    assert scale_free.share == 1


def test_one_feature_from_zero_weights_has_its_mirror_image(tmp_path: Path) -> None:
    found = audit_theorem1(make_run(Shape(columns=(1, 3)), tmp_path)).silos[0]
    assert found.others == "one"
    assert found.same_messages
    assert found.data_difference == pytest.approx(2)


@pytest.mark.parametrize("held", [None, 1])
@pytest.mark.parametrize("turns", [False, True])
@pytest.mark.parametrize("size", [None, 30])
def test_known_weights_recover_the_rows(held: int | None, turns: bool, size: int | None, tmp_path: Path) -> None:
    shape = Shape(columns=(4, 2), held=held, turns=turns, size=size, rounds=40, step_size=0.5, samples=50)
    silo = audit_theorem1(make_run(shape, tmp_path)).silos[0]
    (known,) = [one for one in silo.recoveries if one.condition == "weights known"]
    assert known.error is not None
    assert known.error < 1e-6
    assert known.share == 1


def test_known_weights_recover_the_rows_of_a_run_in_single_precision(tmp_path: Path) -> None:
    """Weights of the same run in double precision are other weights: with them 2% of these rows are recovered."""
    shape = Shape(columns=(6, 3), rounds=200, step_size=0.1, samples=200, precision="float32")
    (silo,) = audit_theorem1(make_run(shape, tmp_path), silo="s0").silos
    (known,) = [one for one in silo.recoveries if one.condition == "weights known"]
    assert known.share == 1


def test_known_rows_recover_the_others(tmp_path: Path) -> None:
    shape = Shape(columns=(4, 2), rounds=40, step_size=0.5, samples=80)
    silo = audit_theorem1(make_run(shape, tmp_path)).silos[0]
    (known,) = [one for one in silo.recoveries if one.condition == "rows known"]
    assert known.error is not None
    assert known.error < 1e-6
    assert known.share == 1


def test_too_few_rounds_recover_little(tmp_path: Path) -> None:
    silo = audit_theorem1(make_run(Shape(columns=(6, 2), rounds=3), tmp_path)).silos[0]
    (known,) = [one for one in silo.recoveries if one.condition == "weights known"]
    assert known.error is not None
    assert known.error > 0.1
    assert known.share == 0


@pytest.mark.parametrize("turns", [False, True])
def test_derivatives_tell_the_labels(turns: bool, tmp_path: Path) -> None:
    found = audit_theorem1(make_run(Shape(columns=(3, 2, 2), held=1, turns=turns, size=20), tmp_path))
    targets = [leak.target.removeprefix("labels, by ").split(", ") for leak in found.label_leaks]
    assert {name for target in targets for name in target} == {"s0", "s2"}
    assert [leak.figures["accuracy by sign"] for leak in found.label_leaks] == [1.0] * len(found.label_leaks)
    assert found.silos[1].recoveries == ()  # the holder sends no scores


def test_first_derivatives_are_the_labels_of_a_regression_from_zero(tmp_path: Path) -> None:
    found = audit_theorem1(make_run(Shape(loss="squared", held=0), tmp_path))
    assert found.label_leaks[0].figures["R^2 of the first"] == pytest.approx(1)


def test_shared_labels_leak_to_nobody(tmp_path: Path) -> None:
    assert audit_theorem1(make_run(Shape(), tmp_path)).label_leaks == ()


def test_single_precision_is_run_again_in_double(tmp_path: Path) -> None:
    found = audit_theorem1(make_run(Shape(precision="float32"), tmp_path))
    assert 1e-9 < found.reproduced < 1e-4
    assert all(one.same_messages and (one.message_difference or 1) < 1e-9 for one in found.silos)


def test_several_classes(tmp_path: Path) -> None:
    out = make_run(Shape(columns=(5, 4)), tmp_path, data={"path": str(_three_classes(tmp_path))}, model={
        "loss": "cross_entropy", "zero_init": False,
    })  # fmt: skip
    found = audit_theorem1(out)
    assert [one.others for one in found.silos] == ["infinitely many", "one"]
    assert all((one.message_difference or 1) < 1e-9 for one in found.silos)


def _three_classes(folder: Path) -> Path:
    draw = np.random.default_rng(0)
    x = draw.normal(size=(60, 9))
    y = np.argmax(x[:, :3], axis=1)
    path = folder / "three.csv"
    lines = [
        f"{i},{','.join(map(repr, row))},c{label}" for i, (row, label) in enumerate(zip(x.tolist(), y, strict=True))
    ]
    path.write_text("\n".join([",".join(["id", *(f"x{i}" for i in range(9)), "label"]), *lines]) + "\n")
    return path


def test_momentum_is_covered(tmp_path: Path) -> None:
    out = make_run(Shape(), tmp_path, optimiser={"name": "momentum", "momentum": 0.5})
    assert all(one.same_messages for one in audit_theorem1(out).silos)


def test_findings_are_written(tmp_path: Path) -> None:
    out = make_run(Shape(), tmp_path)
    found = audit_theorem1(out, silo="s1")
    written = json.loads((out / "audit_theorem1.json").read_text())
    assert [one["silo"] for one in written["silos"]] == ["s1"]
    assert written["silos"][0]["message_difference"] == found.silos[0].message_difference
    assert not list(out.glob("*.partial"))


def test_changed_data_are_noticed(tmp_path: Path) -> None:
    out = make_run(Shape(), tmp_path)
    table = tmp_path / "table.csv"
    lines = table.read_text().splitlines()
    cells = [line.split(",") for line in lines[1:]]
    moved = [",".join([one[0], f"{float(one[1]) ** 3}", *one[2:]]) for one in cells]
    table.write_text("\n".join([lines[0], *moved]) + "\n")
    with pytest.raises(RunError, match=r"the data have changed .* column 'x0' has other values"):
        audit_theorem1(out)
    (out / "fingerprint.json").unlink()  # as in runs from before there were any
    with (
        pytest.warns(UserWarning, match="cannot tell whether these are the data"),
        pytest.raises(RunError, match=r"sends other messages than were recorded"),
    ):
        audit_theorem1(out)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"model": {"l1": 0.1}}, "model.l1 = 0.1: it acts on each weight alone"),
        ({"optimiser": {"name": "adam"}}, "optimiser.name = 'adam'"),
        ({"codecs": {"share": "half"}}, "a codec rounds"),
        ({"model": {"fusion": "head"}}, "model.fusion = 'head'"),
        (
            {"privacy": {"encryption": "paillier", "seconds": {}, "accept_leakage": True}},
            "privacy.encryption: gradients are rounded",
        ),
        ({"model": {"block": "mlp"}}, "silo 's0' is not linear"),
        ({"model": {"blocks": {"s0": {"block": "mlp"}}}}, "audit another silo by --silo \\(s1\\)"),
        ({"algorithm": {"name": "tdcd"}}, "this run is of 'tdcd'"),
        (
            {"algorithm": {"step_size": {"kind": "adaptive", "value": 0.1, "rho": 1, "delta_squared": 1, "every": 5}}},
            "an adaptive schedule follows from estimates on the data",
        ),
        ({"run": {"record_messages": False}}, "train it with run.record_messages = true"),
    ],
)
def test_refusals(changes: dict[str, dict[str, object]], words: str, tmp_path: Path) -> None:
    shape = Shape(rounds=2)
    if "block" in str(changes.get("model")):
        changes = {"model": {"zero_init": False} | changes["model"]}
    if changes.get("algorithm", {}).get("name") == "tdcd":
        shape = replace(shape, algorithm="tdcd")
    if "privacy" in changes:
        shape = replace(shape, held=0, samples=400)
    out = make_run(shape, tmp_path, **changes)
    with pytest.raises(RunError, match=words):
        audit_theorem1(out)
    assert not (out / "audit_theorem1.json").exists()


def test_other_refusals(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"is not a run directory"):
        audit_theorem1(tmp_path)
    out = make_run(Shape(rounds=2), tmp_path)
    with pytest.raises(RunError, match=r"'s7' is not a silo of .*its silos are s0, s1"):
        audit_theorem1(out, silo="s7")
    next((out / "messages").iterdir()).write_bytes(b"nonsense")
    with pytest.raises(RunError, match=r"cannot be read"):
        audit_theorem1(out)
