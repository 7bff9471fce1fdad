"""Common samples: drawn from a table, or the ids that two files have; what the silo with the labels has alone."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import numpy as np
import polars as pl
import pytest
import torch

from crosshatch.data.build import federate, load_dataset
from crosshatch.data.data_settings import DataSettings, FederationSettings, SiloSettings
from crosshatch.data.federated import FederatedData, OwnSamples
from crosshatch.errors import CrosshatchError, DataError

Common = int | float | Literal["all"]


def divided(common: Common | None, *, seed: int = 1, labels: str = "shared") -> FederatedData:
    federation = FederationSettings(silos=2, common=common, labels=labels)
    return federate(load_dataset("breast_cancer"), federation, seed=seed)


def alone(data: FederatedData) -> OwnSamples:
    assert data.alone is not None
    return data.alone


@pytest.mark.parametrize(("common", "count"), [(40, 40), (0.1, 46), (1, 1), ("all", 455), (1.0, 455), (455, 455)])
def test_so_many_are_common_and_the_others_those_of_the_silo_with_labels(common: Common, count: int) -> None:
    data, everybody = divided(common), divided(None)
    assert len(data.y_train) == count
    assert alone(data).silo == "silo1"
    assert len(alone(data).y) == 455 - count
    both = torch.cat([data.silos[0].train, alone(data).x]), torch.cat([data.y_train, alone(data).y])
    mine = {(*row, y) for row, y in zip(both[0].tolist(), both[1].tolist(), strict=True)}
    wanted = zip(everybody.silos[0].train.tolist(), everybody.y_train.tolist(), strict=True)
    assert mine == {(*row, y) for row, y in wanted}
    assert torch.equal(data.silos[1].test, everybody.silos[1].test)


def test_rows_of_both_silos_are_of_the_same_samples() -> None:
    data, everybody = divided(30), divided(None)
    places = {tuple(row): i for i, row in enumerate(everybody.silos[0].train.tolist())}
    rows = [places[tuple(row)] for row in data.silos[0].train.tolist()]
    assert torch.equal(data.silos[1].train, everybody.silos[1].train[rows])
    assert torch.equal(data.y_train, everybody.y_train[rows])


def test_who_is_common_follows_from_the_seed() -> None:
    one, again, other = divided(30), divided(30), divided(30, seed=2)
    assert torch.equal(one.silos[0].train, again.silos[0].train)
    assert not torch.equal(one.silos[0].train, other.silos[0].train)


def test_the_silo_that_holds_the_labels_has_the_others() -> None:
    assert alone(divided(30, labels="silo2")).silo == "silo2"


@pytest.mark.parametrize(
    ("common", "message"),
    [
        (0, "without common samples nothing can be transferred"),
        (0.0, "without common samples"),
        (-3, "without common samples"),
        (456, "there are 455 training samples"),
        (1.5, "at most 1"),
        (True, "give how many"),
        ("some", "give how many"),
        (float("nan"), "without common samples"),
    ],
)
def test_what_is_refused(common: Common, message: str) -> None:
    with pytest.raises(CrosshatchError, match=message):
        divided(common)


def write_files(folder: Path) -> None:
    """A has ids 0 to 39 and the labels, B ids 20 to 69: 20 in common."""
    rng = np.random.default_rng(3)
    kinds = ["x", "y"] * 15 + ["x", "z"] * 5  # 'z' in rows of A, 'y' not in the last ten
    a = {"id": np.arange(40), "a1": rng.normal(5, 2, 40), "kind": kinds, "both": rng.normal(size=40)}
    pl.DataFrame(a | {"y": ["no", "yes"] * 20}).sample(fraction=1, shuffle=True, seed=1).write_csv(folder / "a.csv")
    b = {"id": np.arange(20, 70), "b1": rng.normal(size=50), "both": rng.normal(size=50)}
    pl.DataFrame(b).sample(fraction=1, shuffle=True, seed=2).write_csv(folder / "b.csv")


def read_files(folder: Path, common: Common | None, labels: str = "shared", **settings: str) -> FederatedData:
    silos = (SiloSettings("b", path="b.csv"), SiloSettings("a", path="a.csv"))
    federation = FederationSettings(silos=silos, common=common, labels=labels)
    data = DataSettings(id="id", label="y", test_fraction=0.25, **settings)  # type: ignore[arg-type]
    return federate(load_dataset(data, federation=federation, base=folder), federation, seed=1)


def test_of_files_the_ids_that_both_have_are_common(tmp_path: Path) -> None:
    write_files(tmp_path)
    data = read_files(tmp_path, "all")
    own = alone(data)
    assert (len(data.y_train), len(data.y_test), len(own.y)) == (15, 5, 20)
    assert own.silo == "a"
    assert "30 of 50 rows of b.csv dropped: their ids are not in all files" in map(str, data.notes)
    assert not [note for note in data.notes if "a.csv dropped" in str(note)]
    silo = data.silos[1]
    assert silo.name == "a"
    # ids 0 to 19 in ascending order: prepared as one column of 15 common and 20 own rows
    raw = pl.read_csv(tmp_path / "a.csv").sort("id")
    column = torch.cat([silo.train[:, 0], own.x[:, 0]]).double()
    assert column.mean().item() == pytest.approx(0, abs=1e-6)
    kept = raw["a1"].to_numpy()[:20]
    assert np.corrcoef(own.x[:, 0].numpy(), kept)[0, 1] == pytest.approx(1, abs=1e-6)
    assert own.y.tolist() == [0.0, 1.0] * 10
    assert silo.features == ("a1", "kind=x", "kind=y", "kind=z", "a.both")


@pytest.mark.parametrize(
    ("others", "own", "words"),
    [("yes", "no", "the 15 training rows are of one class only"), ("yes", "maybe", None)],
)
def test_labels_of_rows_that_one_silo_has_alone_are_known(
    tmp_path: Path, others: str, own: str, words: str | None
) -> None:
    """They are training rows like the common ones: no label of theirs is "in the test rows alone"."""
    write_files(tmp_path)
    common = pl.col("id") >= 20
    labels = pl.when(common).then(pl.lit(others) if words else pl.col("y")).otherwise(pl.lit(own))
    pl.read_csv(tmp_path / "a.csv").with_columns(y=labels).write_csv(tmp_path / "a.csv")
    if words:
        with pytest.raises(DataError, match=words):
            read_files(tmp_path, "all")
    else:
        assert read_files(tmp_path, "all").classes == 3


def test_fewer_common_ids_leave_more_to_the_silo_with_the_labels(tmp_path: Path) -> None:
    write_files(tmp_path)
    data = read_files(tmp_path, 6)
    assert (len(data.y_train), len(alone(data).y)) == (6, 29)


def test_without_common_nothing_is_kept(tmp_path: Path) -> None:
    write_files(tmp_path)
    data = read_files(tmp_path, None)
    assert data.alone is None
    assert "20 of 40 rows of a.csv dropped: their ids are not in all files" in map(str, data.notes)


def test_labels_may_be_in_a_file_of_their_own(tmp_path: Path) -> None:
    write_files(tmp_path)
    whole = pl.read_csv(tmp_path / "a.csv")
    whole.drop("y").write_csv(tmp_path / "a.csv")
    whole.select("id", "y").filter(pl.col("id") != 3).write_csv(tmp_path / "labels.csv")
    data = read_files(tmp_path, "all", "a", path="labels.csv")
    assert (alone(data).silo, len(alone(data).y)) == ("a", 19)  # nobody knows the label of 3


def test_ids_without_overlap_are_refused(tmp_path: Path) -> None:
    write_files(tmp_path)
    pl.read_csv(tmp_path / "b.csv").with_columns(id=pl.col("id") + 100).write_csv(tmp_path / "b.csv")
    with pytest.raises(DataError, match="the ids do not overlap"):
        read_files(tmp_path, "all")


def test_weights_of_samples_are_refused() -> None:
    data = DataSettings(name="breast_cancer", sample_weights="mean radius")
    federation = FederationSettings(silos=2, common=30)
    with pytest.raises(CrosshatchError, match="sample_weights does not go with"):
        federate(load_dataset(data), federation, seed=1)
