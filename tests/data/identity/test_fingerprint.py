"""Fingerprints are the same where the data are, and say what differs where they are not."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import polars as pl
import pytest

from crosshatch.data.build import load_dataset
from crosshatch.data.data_settings import DataSettings, FederationSettings, SampleSplit, SiloSettings
from crosshatch.data.dataset import Dataset, Samples
from crosshatch.data.identity.differences import differences
from crosshatch.data.identity.fingerprint import Fingerprint, same_test_rows
from crosshatch.data.identity.owner_key import OwnerKey
from crosshatch.data.identity.row_ids import row_digests
from crosshatch.data.identity.take_fingerprint import take_fingerprint, take_named

KEY, OTHER_KEY = OwnerKey(bytes(range(32))), OwnerKey(bytes(range(1, 33)))
FEDERATION = FederationSettings(
    silos=(SiloSettings("bank", columns=("age", "income")), SiloSettings("insurer", columns=("town", "claims")))
)
ROWS = 60


def table() -> pl.DataFrame:
    random = np.random.default_rng(7)
    return pl.DataFrame(
        {
            "person": random.permutation(ROWS) + 100,
            "age": random.integers(20, 80, ROWS),
            "income": np.round(random.normal(1000, 10, ROWS), 2),
            "town": random.choice(["Reading", "Ürümqi", "York"], ROWS),
            "claims": random.integers(0, 3, ROWS).astype(float),
            "bad": np.arange(ROWS) % 2,
        }
    )


def read(
    folder: Path,
    frame: pl.DataFrame,
    *,
    ids: bool = True,
    suffix: str = "csv",
    test: int | None = 12,
    **settings: object,
) -> Dataset:
    """The frame as a file, its last rows as a file of test rows unless `test` is None."""
    frame = frame if ids else frame.drop("person")
    files = {"rows": frame if test is None else frame[: ROWS - test]}
    files |= {} if test is None else {"test": frame[ROWS - test :]}
    for name, part in files.items():
        path = folder / f"{name}.{suffix}"
        part.write_parquet(path) if suffix == "parquet" else part.write_csv(path)
    found = DataSettings(
        path=str(folder / f"rows.{suffix}"),
        test_path=None if test is None else str(folder / f"test.{suffix}"),
        id="person" if ids else None,
        label="bad",
    )
    return load_dataset(replace(found, **settings))  # type: ignore[arg-type]


def print_of(dataset: Dataset, federation: FederationSettings = FEDERATION) -> Fingerprint:
    return take_fingerprint(dataset, federation, KEY)


def told(then: Dataset, now: Dataset, federation: FederationSettings = FEDERATION) -> tuple[str, ...] | None:
    return differences(print_of(then, federation), take_named(now, federation, KEY))


def changed(frame: pl.DataFrame, column: str, row: int, value: object) -> pl.DataFrame:
    values = frame[column].to_list()
    values[row] = value
    return frame.with_columns(pl.Series(column, values, strict=False))


@pytest.mark.parametrize("ids", [True, False])
def test_the_same_values_in_another_format(tmp_path: Path, ids: bool) -> None:
    frame = table()
    once = print_of(read(tmp_path, frame, ids=ids))
    again = frame.with_columns(
        pl.col("age").cast(pl.Float32), pl.col("town").cast(pl.Categorical), pl.col("bad").cast(pl.Int8)
    )
    for dataset in (read(tmp_path, again, ids=ids, suffix="parquet"), read(tmp_path, frame, ids=ids)):
        assert print_of(dataset) == once
        assert print_of(dataset).digest == once.digest


def test_rows_in_another_order(tmp_path: Path) -> None:
    frame = table()
    turned = pl.concat([frame[:48][::-1], frame[48:][::-1]])
    one, other = print_of(read(tmp_path, frame)), print_of(read(tmp_path, turned))
    assert msgspec.structs.replace(other, order=one.order) == one
    assert other.order != one.order
    assert told(read(tmp_path, frame), read(tmp_path, turned)) == ("the rows stand in another order",)
    without, turned_without = read(tmp_path, frame, ids=False), read(tmp_path, turned, ids=False)
    assert print_of(without).labels != print_of(turned_without).labels
    assert told(without, turned_without) == (
        "the values of all columns differ, or the rows stand in another order",
        "labels differ",
    )


@pytest.mark.parametrize("ids", [True, False])
def test_another_split_has_the_same_labels(tmp_path: Path, ids: bool) -> None:
    one, other, less, aside = (
        read(tmp_path, table(), ids=ids, test=None, **settings)
        for settings in ({}, {"split_seed": 1}, {"limit": 20}, {"validation": 0.25, "test_fraction": 0.4})
    )
    assert {print_of(dataset).labels for dataset in (one, other, less, aside)} == {print_of(one).labels}
    for dataset in (other, aside):
        assert told(one, dataset) == ("other rows are trained, validated or tested on",)
    assert same_test_rows(print_of(one), print_of(less)) is True
    assert same_test_rows(print_of(one), print_of(other)) is False
    assert print_of(one).counts == {"all": 60, "train": 48, "validation": 0, "test": 12, "alone": 0}


CHANGES: list[tuple[Callable[[pl.DataFrame], pl.DataFrame], str]] = [
    (lambda frame: frame.with_columns(bad=1 - pl.col("bad")), "labels differ"),
    (lambda frame: changed(frame, "bad", 3, 1 - frame["bad"][3]), "labels differ"),
    (lambda frame: changed(frame, "income", 30, frame["income"][30] + 0.01), "column 'income' has other values"),
    (lambda frame: changed(frame, "town", 59, "Paris"), "column 'town' has other values"),
    (
        lambda frame: changed(changed(frame, "age", 5, 99), "claims", 5, 9.0),
        "columns 'age', 'claims' have other values",
    ),
    (lambda frame: frame.with_columns(age=pl.format("over {}", pl.col("age") // 10)), "column 'age' has another type"),
    (lambda frame: changed(frame, "age", 5, None), "column 'age' has other values"),
    (lambda frame: frame[1:], "it has 59 rows instead of 60"),
    (lambda frame: changed(frame, "person", 3, 999), "the ids of the rows differ"),
]


@pytest.mark.parametrize(("change", "words"), CHANGES)
def test_what_differs(tmp_path: Path, change: Callable[[pl.DataFrame], pl.DataFrame], words: str) -> None:
    frame = table()
    dataset = read(tmp_path, frame, test=None)
    assert told(dataset, dataset) == ()
    found = told(dataset, read(tmp_path, change(frame).cast({"bad": pl.Int64}), test=None))
    assert found is not None
    assert words in found
    assert found[1:] in ((), ("other rows are trained, validated or tested on",))  # by class, so labels count


def test_columns(tmp_path: Path) -> None:
    even = FederationSettings(silos=2)
    frame = table()
    dataset = read(tmp_path, frame)
    assert told(dataset, read(tmp_path, frame.drop("claims")), even) == ("a column is gone",)
    assert told(dataset, read(tmp_path, frame.with_columns(pl.lit(1.5).alias("debt"))), even) == (
        "column 'debt' is new",
    )
    turned = frame.select("person", "income", "age", "town", "claims", "bad")
    assert told(dataset, read(tmp_path, turned), even) == ("silo 'silo1' has other columns, or in another order",)
    other = FederationSettings(silos=3)
    assert differences(print_of(dataset, even), take_named(dataset, other, KEY)) == (
        "it is divided among 3 silos instead of 2",
    )
    assert same_test_rows(print_of(dataset, even), print_of(dataset, other)) is True


def test_columns_nobody_holds_do_not_count_unless_they_say_whose_a_sample_is(tmp_path: Path) -> None:
    frame = table()
    bank = FederationSettings(silos=(SiloSettings("bank", columns=("age", "income")),))
    moved = changed(frame, "town", 3, "Paris")
    assert told(read(tmp_path, frame), read(tmp_path, moved), bank) == ()
    by_town = replace(bank, samples=SampleSplit("column", column="town"))
    assert told(read(tmp_path, frame), read(tmp_path, moved), by_town) == ("column 'town' has other values",)
    weighted = changed(frame, "claims", 3, 17.0)
    one, other = (read(tmp_path, rows, sample_weights="claims") for rows in (frame, weighted))
    assert told(one, other, bank) == ("column 'claims' has other values",)


def test_another_key_cannot_tell(tmp_path: Path) -> None:
    dataset = read(tmp_path, table())
    one, other = take_fingerprint(dataset, FEDERATION, KEY), take_named(dataset, FEDERATION, OTHER_KEY)
    assert differences(one, other) is None
    assert same_test_rows(one, other.fingerprint) is None
    assert one.labels != other.fingerprint.labels
    assert not one.columns.keys() & other.fingerprint.columns.keys()


def test_as_json_it_has_nothing_of_the_data_in_it(tmp_path: Path) -> None:
    found = print_of(read(tmp_path, table()))
    text = msgspec.json.encode(found).decode()
    assert msgspec.json.decode(text, type=Fingerprint) == found
    assert not any(
        word in text for word in ("age", "income", "town", "claims", "bad", "bank", "insurer", "York", "Reading")
    )
    fields = json.loads(text)
    assert fields.keys() == {*Fingerprint.__struct_fields__}
    assert KEY.secret.hex() not in text
    assert all(len(one) == 32 for one in fields["silos"])


def test_labels_by_their_names(tmp_path: Path) -> None:
    """Which class is the positive one does not change the labels."""
    words = table().with_columns(pl.col("bad").replace_strict({0: "good", 1: "bad"}))
    one, other = read(tmp_path, words, test=None), read(tmp_path, words, test=None, positive="bad")
    assert (one.train.y != other.train.y).any()
    assert print_of(one).labels == print_of(other).labels
    assert print_of(one).test == print_of(other).test


def test_arrays() -> None:
    digits = load_dataset("digits")
    halves, patches = (FederationSettings(split=split) for split in ("halves", "patches"))
    one = print_of(digits, halves)
    assert same_test_rows(one, print_of(digits, patches)) is True
    assert isinstance(digits.test.x, np.ndarray)
    spoiled = digits.test.x.copy()
    spoiled[5, 2, 3] += 1 / 16
    other = replace(digits, test=replace(digits.test, x=spoiled))
    assert told(digits, other, halves) == ("column 'pixels' has other values",)
    assert same_test_rows(one, print_of(other, halves)) is False
    exact = replace(digits, train=replace(digits.train, x=digits.train.x.astype(np.float64)))  # type: ignore[union-attr]
    assert print_of(exact, halves) == one


def test_a_data_set_made_by_hand() -> None:
    random = np.random.default_rng(0)
    samples = Samples(random.normal(size=(30, 4, 2)), np.arange(30) % 2)
    dataset = Dataset("made", "sequence", samples, samples.take(np.arange(10)), "binary", 2, ("a", "b"))
    x = samples.x.copy()  # type: ignore[union-attr]
    x[3, 2, 1] = np.nan
    other = replace(dataset, train=replace(samples, x=x))
    federation = FederationSettings(silos=2)
    assert told(dataset, dataset, federation) == ()
    assert told(dataset, other, federation) == ("column 'b' has other values",)


def test_negative_zero_and_every_nan_are_one() -> None:
    odd = np.frombuffer(np.array([0x7FF8000000000001, 0xFFF8000000000000], dtype=np.uint64).tobytes())
    frames = [
        pl.DataFrame({"a": [0.0, None, None], "b": [1.0, 2, 3]}),
        pl.DataFrame({"a": [-0.0, *odd], "b": [1, 2, 3]}),
    ]
    found = []
    for frame in frames:
        samples = Samples(frame, np.array([0, 1, 0]))
        found.append(
            print_of(Dataset("made", "table", samples, samples, "binary", 2, ("a", "b")), FederationSettings())
        )
    assert found[0] == found[1]


def test_ids_as_text_and_as_numbers() -> None:
    x = np.zeros((3, 1, 1))
    made = []
    for ids in (np.array([3, 1, 20]), np.array(["3", "1", "20"]), np.array(["3", "1", "020"])):
        samples = Samples(x, np.array([0, 1, 0]), ids=ids)
        test = replace(samples.take(np.array([0])), ids=np.array([7]))
        made.append(
            print_of(Dataset("made", "sequence", samples, test, "binary", 2, ("a",)), FederationSettings(silos=1))
        )
    assert made[0] == made[1]
    assert made[0].rows != made[2].rows
    assert made[0].labels != made[2].labels  # other people have them


def test_the_labels_of_other_people() -> None:
    """Also where they stand in the same order."""
    made = []
    for shift in (0, 100):
        samples = Samples(np.zeros((4, 1, 1)), np.array([0, 1, 0, 1]), ids=np.arange(4) + shift)
        dataset = Dataset("made", "sequence", samples, samples.take(np.array([0])), "binary", 2, ("a",))
        made.append(print_of(dataset, FederationSettings(silos=1)))
    assert made[0].labels != made[1].labels
    assert made[0].test != made[1].test


def test_rows_that_two_sets_have_in_common(tmp_path: Path) -> None:
    whole = read(tmp_path, table(), test=None).train
    some = whole.take(np.arange(5, 15)[::-1])
    both = np.isin(row_digests(whole, KEY), row_digests(some, KEY))
    assert np.flatnonzero(both).tolist() == list(range(5, 15))
    assert not np.isin(row_digests(whole, KEY), row_digests(whole, OTHER_KEY)).any()
    for rows in (replace(whole, ids=None), Samples(np.random.default_rng(0).normal(size=(20, 3)), np.zeros(20))):
        part = rows.take(np.arange(5, 15)[::-1])
        both = np.isin(row_digests(rows, KEY), row_digests(part, KEY))
        assert np.flatnonzero(both).tolist() == list(range(5, 15))


def test_rows_that_one_silo_has_alone(tmp_path: Path) -> None:
    """They are part of the labels, and of the values of that silo's columns."""
    bank = table().select("person", "age", "income", "bad")
    federation = FederationSettings(
        silos=(SiloSettings("bank", path="bank.csv"), SiloSettings("insurer", path="insurer.csv")),
        labels="bank",
        common="all",
    )

    def files(frame: pl.DataFrame) -> Dataset:
        frame.write_csv(tmp_path / "bank.csv")
        table()[:40].select("person", "town", "claims").write_csv(tmp_path / "insurer.csv")
        return load_dataset(DataSettings(id="person", label="bad"), federation=federation, base=tmp_path)

    whole = files(bank)
    assert print_of(whole, federation).counts["alone"] == 20
    assert told(whole, files(bank), federation) == ()
    assert told(whole, files(changed(bank, "age", 55, 99)), federation) == ("column 'age' has other values",)
    assert told(whole, files(changed(bank, "bad", 55, 1 - bank["bad"][55])), federation) == ("labels differ",)
    assert told(whole, files(bank[:-1]), federation) == ("it has 59 rows instead of 60",)


def test_columns_that_do_not_change_with_time(tmp_path: Path) -> None:
    random = np.random.default_rng(5)
    arrays = {"x": random.normal(size=(30, 6, 2)), "y": np.arange(30) % 2, "static": random.normal(size=(30, 2))}
    federation = FederationSettings(
        silos=(SiloSettings("ward", columns=("x0", "x1")), SiloSettings("desk", groups=("static",)))
    )

    def archive(**other: object) -> Dataset:
        np.savez(tmp_path / "stay.npz", static_names=np.array(["age", "height"]), **(arrays | other))  # type: ignore[arg-type]
        return load_dataset("stay", tmp_path)

    static, x = arrays["static"].copy(), arrays["x"].copy()
    static[4, 1] += 1
    x[7, 3, 0] += 1
    whole = archive()
    assert told(whole, archive(static=static), federation) == ("column 'height' has other values",)
    assert told(whole, archive(x=x), federation) == ("column 'x0' has other values",)
    assert told(whole, archive(x=arrays["x"].astype(np.float32).astype(np.float64)), federation) != ()
