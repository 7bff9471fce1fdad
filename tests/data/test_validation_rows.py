"""Validation rows: a fraction of the training rows, or files of one's own; prepared like test rows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch

from crosshatch.data.build import build, federate, load_dataset
from crosshatch.data.data_settings import DataSettings, FederationSettings, SiloSettings
from crosshatch.errors import ConfigError, DataError, PartitionError


def people(first: int, count: int) -> pl.DataFrame:
    random = np.random.default_rng(first)
    colour = random.choice(["red", "green"], count)
    return pl.DataFrame({
        "id": np.arange(first, first + count), "age": random.normal(40, 9, count), "colour": colour,
        "bad": (np.arange(count) % 2),
    })  # fmt: skip


@pytest.fixture
def files(tmp_path: Path) -> Path:
    people(0, 60).write_csv(tmp_path / "train.csv")
    people(100, 20).write_csv(tmp_path / "check.csv")
    people(200, 30).write_csv(tmp_path / "test.csv")
    return tmp_path


def test_a_file_of_validation_rows(files: Path) -> None:
    settings = DataSettings(path="train.csv", id="id", label="bad", validation="check.csv", test_path="test.csv")
    data = build(settings, FederationSettings(silos=2), base=files, seed=0)
    assert data.y_validation is not None
    assert (len(data.y_train), len(data.y_validation), len(data.y_test)) == (60, 20, 30)
    age, mean = people(100, 20)["age"].to_numpy(), people(0, 60)["age"].to_numpy()
    found = data.silos[0].validation
    assert found is not None
    np.testing.assert_allclose(found[:, 0], (age - mean.mean()) / mean.std(), atol=1e-5)


def test_a_file_beside_a_fraction_for_testing(files: Path) -> None:
    settings = DataSettings(path="train.csv", id="id", label="bad", validation="check.csv")
    data = build(settings, FederationSettings(silos=2), base=files, seed=0)
    assert data.y_validation is not None
    assert (len(data.y_train), len(data.y_validation), len(data.y_test)) == (48, 20, 12)


def test_a_file_per_silo(files: Path) -> None:
    for name, first in (("train", 0), ("check", 100), ("test", 200)):
        frame = pl.read_csv(files / f"{name}.csv")
        frame.select("id", "age", "bad").write_csv(files / f"a-{name}.csv")
        frame.select("id", "colour").reverse().write_csv(files / f"b-{name}.csv")
        assert frame["id"][0] == first
    silos = tuple(
        SiloSettings(name, path=f"{name}-train.csv", test_path=f"{name}-test.csv", validation_path=f"{name}-check.csv")
        for name in "ab"
    )
    data = build(DataSettings(id="id", label="bad"), FederationSettings(silos=silos), base=files, seed=0)
    assert data.y_validation is not None
    assert data.y_validation.tolist() == people(100, 20)["bad"].to_list()
    some = (SiloSettings("a", path="a-train.csv", validation_path="a-check.csv"), SiloSettings("b", path="b-train.csv"))
    with pytest.raises(PartitionError, match="silo 'b' has no validation_path but 'a' has"):
        build(DataSettings(id="id", label="bad"), FederationSettings(silos=some), base=files, seed=0)
    none = tuple(SiloSettings(name, path=f"{name}-train.csv") for name in "ab")
    with pytest.raises(ConfigError, match=r"data.validation = 'y.csv' is given and no silo has a validation_path"):
        build(
            DataSettings(id="id", label="bad", validation="y.csv"), FederationSettings(silos=none), base=files, seed=0
        )


def test_a_row_in_both_files_is_refused(files: Path) -> None:
    people(59, 20).write_csv(files / "check.csv")
    settings = DataSettings(path="train.csv", id="id", label="bad", validation="check.csv")
    with pytest.raises(DataError, match=r"id '59' is in .*train.csv and in .*check.csv: a validation row must not"):
        build(settings, FederationSettings(silos=2), base=files, seed=0)


@pytest.mark.parametrize("name", ["digits", "wine"])
def test_a_fraction_of_images_and_tables(name: str) -> None:
    whole, part = load_dataset(name), load_dataset(DataSettings(name=name, validation=0.25))
    assert part.validation is not None
    assert len(part.validation) == pytest.approx(len(whole.train) / 4, abs=1)
    assert len(part.train) + len(part.validation) == len(whole.train)
    data = federate(part, FederationSettings(silos=2), seed=0)
    for silo in data.silos:
        assert silo.validation is not None
        assert silo.validation.shape[1:] == silo.test.shape[1:]
        assert torch.isfinite(silo.validation).all()


def test_what_belongs_together_stays_on_one_side(tmp_path: Path) -> None:
    frame = people(0, 90).with_columns(household=pl.Series(np.arange(90) // 3))
    frame.write_csv(tmp_path / "all.csv")
    settings = DataSettings(path="all.csv", id="id", label="bad", split_by="household", validation=0.3)
    found = load_dataset(settings, base=tmp_path)
    assert found.validation is not None
    held = [set(np.asarray(one.x["household"])) for one in (found.train, found.validation, found.test)]
    assert not held[0] & held[1]
    assert not held[0] & held[2]
    assert not held[1] & held[2]
