"""Which samples are kept by their label, rows at random, and sequences as a table of statistics."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy import stats

from crosshatch.data.build import build, federate, load_dataset
from crosshatch.data.data_settings import DataSettings, FederationSettings, SiloSettings
from crosshatch.data.dataset import Samples
from crosshatch.data.encoding.encode_part import encode
from crosshatch.data.encoding.summaries import PARTS, STATISTICS, part_of_time, summarise
from crosshatch.data.new_rows import part_of, read_rows
from crosshatch.errors import ConfigError, DataError


def test_only_samples_of_these_classes() -> None:
    everything, two = load_dataset("digits"), load_dataset(DataSettings(name="digits", classes=(3, 8)))
    labels = np.concatenate([everything.train.y, everything.test.y])
    assert len(two.train) + len(two.test) == np.isin(labels, (3, 8)).sum()
    assert (two.target, two.classes, two.class_names) == ("binary", 2, ("3", "8"))
    assert isinstance(everything.train.x, np.ndarray)
    assert isinstance(two.train.x, np.ndarray)
    numbers = np.concatenate([everything.train.numbers, everything.test.numbers])
    assert two.train.numbers is not None
    places = {int(number): k for k, number in enumerate(numbers)}
    for row in (0, 7, -1):  # the place in the source is kept, so it is the same digit
        assert labels[places[int(two.train.numbers[row])]] == (3, 8)[two.train.y[row]]


def test_as_many_samples_of_every_class() -> None:
    plain, even = load_dataset("breast_cancer"), load_dataset(DataSettings(name="breast_cancer", balance=True))
    few = load_dataset(DataSettings(name="breast_cancer", balance=True, limit=20))
    rarest = np.bincount(plain.train.y).min()
    assert np.bincount(even.train.y).tolist() == [rarest, rarest]
    assert places(even.test) == places(plain.test)  # test rows stay as they are
    assert places(few.train) < places(even.train) < places(plain.train)
    with pytest.raises(ConfigError, match=r"data\.balance = true: these labels are not classes"):
        load_dataset(DataSettings(name="diabetes", balance=True))


def places(samples: Samples) -> set[int]:
    """Those of the rows in their source."""
    assert samples.numbers is not None
    return set(samples.numbers.tolist())


def test_classes_of_text_and_an_official_order(tmp_path: Path) -> None:
    words = np.array(["cat", "dog", "cow", "Dog"] * 10)
    frame = pl.DataFrame({"x": np.arange(40.0), "kind": words})
    frame.write_csv(tmp_path / "animals.csv")
    settings = DataSettings(path="animals.csv", label="kind", classes=("dog", "cow"))
    data = load_dataset(settings, base=tmp_path)
    assert len(data.train) + len(data.test) == 30  # both spellings of dog are one class
    x, y = np.arange(20.0)[:, np.newaxis], np.arange(20) % 3
    np.savez(tmp_path / "ordered.npz", x_train=x, y_train=y, x_test=x[:6], y_test=y[:6])
    kept = load_dataset(DataSettings(name="ordered", classes=(0, 2)), tmp_path)
    assert (len(kept.train), len(kept.test)) == (13, 4)


def test_classes_that_cannot_be_kept() -> None:
    with pytest.raises(DataError, match=r"no training row has the label '11' \(data.classes\): use some of 0, 1, 2"):
        load_dataset(DataSettings(name="digits", classes=(3, 11)))
    with pytest.raises(ConfigError, match=r"data.classes = \[3\]: name at least two different labels"):
        load_dataset(DataSettings(name="digits", classes=(3,)))


def test_rows_at_random_where_a_column_keeps_rows_together(tmp_path: Path) -> None:
    recording = np.repeat(np.arange(10), 8)
    x = np.random.default_rng(0).normal(size=(80, 3))
    np.savez(tmp_path / "epileptic_seizure.npz", x=x, y=np.tile([0, 1], 40), recording=recording)
    together = load_dataset(DataSettings(name="epileptic_seizure"), tmp_path)
    apart = load_dataset(DataSettings(name="epileptic_seizure", split_by="none"), tmp_path)
    groups = [{*map(int, part.extra["recording"])} for part in (together.train, together.test)]
    assert not groups[0] & groups[1]
    mixed = [{*map(int, part.extra["recording"])} for part in (apart.train, apart.test)]
    assert mixed[0] & mixed[1]
    assert len(apart.test) == 16


def test_summaries_are_the_statistics_of_their_part_of_the_time() -> None:
    random = np.random.default_rng(1)
    x = random.normal(size=(6, 48, 2))
    x[random.random(x.shape) < 0.6] = np.nan
    x[0, :, 1] = np.nan  # never measured
    x[1, :5, 0] = 4.25  # equal values
    table = summarise(x, ["HR", "Temp"])
    assert table.columns == [f"{name}.{part}.{one}" for name in ("HR", "Temp") for part in PARTS for one in STATISTICS]
    for k, name in enumerate(("HR", "Temp")):
        for part in PARTS:
            for row in range(6):
                values = x[row, part_of_time(part, 48), k]
                values = values[~np.isnan(values)]
                got = [table[f"{name}.{part}.{one}"][row] for one in STATISTICS]
                assert got[-1] == len(values)
                if not len(values):
                    assert np.isnan(got[:-1]).all()
                    continue
                skewness = 0.0 if np.ptp(values) == 0 else float(stats.skew(values))
                expected = [values.min(), values.max(), values.mean(), values.std(), skewness]
                np.testing.assert_allclose(got[:-1], expected, rtol=1e-9, atol=1e-12)


def test_silos_take_summaries_by_pattern_and_new_sequences_are_summarised_too(tmp_path: Path) -> None:
    random = np.random.default_rng(2)
    x = random.normal(size=(60, 10, 3))
    x[random.random(x.shape) < 0.3] = np.nan
    names = np.array(["HR", "Temp", "pH"])
    np.savez(tmp_path / "stays.npz", x=x, y=np.tile([0, 1], 30), feature_names=names, axes="time,columns")
    settings = DataSettings(name="stays", summaries=True, impute="mean", indicators=False)
    silos = (SiloSettings("ward", columns=("HR.*", "Temp.*")), SiloSettings("laboratory", columns=("pH.*",)))
    federation = FederationSettings(silos=silos)
    data = build(settings, federation, tmp_path, seed=0)
    assert [len(silo.features) for silo in data.silos] == [84, 42]
    dataset = load_dataset(settings, tmp_path)
    assert dataset.kind == "table"
    again = federate(dataset, federation, seed=0)
    rows = read_rows(tmp_path / "stays.npz")
    assert dataset.test.numbers is not None
    encoder = again.silos[1].encoder
    assert encoder is not None
    part = part_of(rows, encoder, "laboratory", own=False)
    np.testing.assert_array_equal(encode(encoder, part, "new")[dataset.test.numbers], again.silos[1].test)


def test_summaries_are_of_sequences_only() -> None:
    with pytest.raises(ConfigError, match=r"data.summaries = true, but data 'wine' is a set of tables"):
        load_dataset(DataSettings(name="wine", summaries=True))
