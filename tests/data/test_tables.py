"""One own file for all silos: CSV, TSV and Parquet, with the mistakes people make."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from crosshatch.data.build import build, load_dataset
from crosshatch.data.data_settings import DataSettings, FederationSettings, SiloSettings
from crosshatch.errors import ConfigError, CrosshatchError, DataError

Rows = dict[str, list[object]]


def people(n: int = 20) -> Rows:
    return {
        "id": list(range(n)),
        "age": [20 + i for i in range(n)],
        "town": ["b" if i % 3 else "a" for i in range(n)],
        "sum": [0.5 * i for i in range(n)],
        "bad": [i % 2 for i in range(n)],
    }


def write(rows: Rows, path: Path) -> Path:
    frame = pl.DataFrame(rows)
    if path.suffix == ".parquet":
        frame.write_parquet(path)
    else:
        frame.write_csv(path, separator="\t" if path.suffix == ".tsv" else ",")
    return path


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.parquet", "A.CSV"])
def test_the_same_table_in_any_format(tmp_path: Path, name: str) -> None:
    write(people(), tmp_path / name)
    dataset = load_dataset(DataSettings(path=name, id="id", label="bad"), base=tmp_path)
    assert dataset.columns == ("age", "town", "sum")
    assert (len(dataset.train), len(dataset.test), dataset.target) == (16, 4, "binary")
    assert dataset.train.ids is not None
    assert (dataset.train.ids % 2 == dataset.train.y).all()
    assert isinstance(dataset.train.x, pl.DataFrame)
    assert (dataset.train.x["age"].to_numpy() == dataset.train.ids + 20).all()


def test_a_test_file_and_columns_by_silo(tmp_path: Path) -> None:
    write(people(), tmp_path / "train.csv")
    later = people(6)
    later["id"] = list(range(100, 106))
    write(later, tmp_path / "test.csv")
    data = build(
        DataSettings(path="train.csv", test_path="test.csv", id="id", label="bad"),
        FederationSettings(
            silos=(SiloSettings("bank", columns=("age", "town")), SiloSettings("shop", columns=("sum",))), labels="shop"
        ),
        base=tmp_path,
        seed=1,
    )
    assert [silo.features for silo in data.silos] == [("age", "town=a", "town=b"), ("sum",)]
    assert [tuple(silo.test.shape) for silo in data.silos] == [(6, 3), (6, 1)]
    assert data.label_silo == "shop"
    assert data.y_test.tolist() == [0, 1, 0, 1, 0, 1]


def test_columns_left_out_can_still_divide(tmp_path: Path) -> None:
    write(people(), tmp_path / "a.csv")
    settings = DataSettings(path="a.csv", id="id", label="bad", leave_out=("town",), split_by="town", test_fraction=0.5)
    dataset = load_dataset(settings, base=tmp_path)
    assert dataset.columns == ("age", "sum")
    assert len(set(dataset.train.extra["town"])) == 1
    assert set(dataset.train.extra["town"]).isdisjoint(dataset.test.extra["town"])


def test_missing_values_are_read_as_missing(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a,b,y\n1,x,0\n,y,1\nNA,?,0\nNaN,x,1\n5,y,0\n")
    settings = DataSettings(path="a.csv", label="y", impute="mean", standardise=False, test_fraction=0.21)
    data = build(settings, FederationSettings(silos=1), base=tmp_path, seed=0)
    assert data.silos[0].features[:2] == ("a", "a missing")
    with pytest.raises(DataError, match=r"silo 'silo1' of a.csv: column 'a' has \d missing values"):
        build(DataSettings(path="a.csv", label="y"), FederationSettings(silos=1), base=tmp_path, seed=0)


def with_column(name: str, values: Callable[[int], object]) -> Rows:
    rows = people()
    rows[name] = [values(i) for i in range(20)]
    return rows


@pytest.mark.parametrize(
    ("rows", "settings", "message"),
    [
        (people(), {"label": None}, "a.csv: no label column is named: set data.label"),
        (people(), {"label": "bda"}, "a.csv: unknown label column 'bda': did you mean 'bad'"),
        (people(), {"id": "ID"}, "a.csv: unknown id column 'ID': did you mean 'id'"),
        (people(), {"id": "bad"}, "'bad' is both data.id and data.label"),
        (with_column("id", lambda i: i // 2), {}, r"a.csv: id '0' in column 'id' occurs 2 times \(10 such ids\)"),
        (with_column("id", lambda i: i or None), {}, "id 'id' has no value in row 1 of 20"),
        (with_column("bad", lambda i: None if i == 7 else i % 2), {}, "a.csv: label 'bad' has no value in row 8 of 20"),
        (with_column("bad", lambda i: float("nan") if i == 7 else i % 2.0), {}, "label 'bad' has no value in row 8"),
        (with_column("bad", lambda _: 1), {}, "a.csv.*all 20 labels are '1', one class only"),
        (with_column("sum", lambda i: float("inf") if i < 9 else i), {}, r"of a.csv.*column 'sum' has \d+ infinite"),
        (with_column("sum", lambda i: None if i < 9 else i), {}, r"of a.csv.*column 'sum' has \d+ missing"),
        (
            with_column("sum", lambda i: -1e300 if i == 6 else 0.5 * i),
            {},
            r"a.csv: column 'sum' has -1e\+300 in row 7, too large .*correct it, .* or leave it out \(data.leave_out\)",
        ),
        (
            with_column("bad", lambda i: i),
            {"target": "classes"},
            "the 20 rows has a class of its own.*regression",
        ),
        (people(), {"test_path": "a.csv"}, "id '0' is in .*a.csv and in .*a.csv"),
        (people(), {"path": "absent.csv"}, "no file .*absent.csv: check the path"),
        (people(), {"path": "a.xlsx"}, "a.xlsx: unsupported kind of file '.xlsx': use .csv"),
        (people(), {"leave_out": ("agee",)}, "data.leave_out: unknown column 'agee': did you mean 'age'"),
        (people(), {"categorical": ("agee",)}, "data.categorical: unknown column 'agee': did you mean 'age'"),
        (people(), {"split_by": "agee"}, "data.split_by: unknown column 'agee': did you mean 'age'"),
        (people(), {"clip": 0.0}, "data.clip = 0.0"),
        (people(), {"name": "wine"}, "either a name"),
        (people(), {"path": None}, "either a name"),
        (people(), {"path": None, "name": "wine"}, "data.id is for your own files"),
    ],
)
def test_mistakes_are_one_line_with_a_remedy(
    tmp_path: Path, rows: Rows, settings: dict[str, str | None], message: str
) -> None:
    write(rows, tmp_path / "a.csv")
    data = DataSettings(**{"path": "a.csv", "id": "id", "label": "bad", **settings})  # type: ignore[arg-type]
    with pytest.raises(CrosshatchError, match=message) as caught:
        build(data, FederationSettings(), base=tmp_path, seed=0)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", b""),
        ("a.csv", b"a,y\n"),
        ("a.csv", b"a,y\n1,2,3,4\n5\n"),
        ("a.csv", b"a,y\n\xff\xfe\x00,1\n"),
        ("a.parquet", b"PAR1 no"),
    ],
)
def test_unreadable_files(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=name) as caught:
        load_dataset(DataSettings(path=name, label="y"), base=tmp_path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", "u,v,y\n1,2,0\n3,4,5,1\n", r"a.csv, line 3: 4 values, and the header names 3 columns: correct"),
        ("a.csv", 'u,y\n"two\nlines",0\n3,4,1\n', r"a.csv, line 4: 3 values, and the header names 2 columns"),
        ("a.tsv", "u\ty\n1,5\t0\n3\t4\t1\n", r"a.tsv, line 3: 3 values"),
        ("a.csv", "u,y,u\n1,0,2\n", r"a.csv: 2 columns are called 'u': give each a name of its own"),
        ("a.csv", '\ufeffy,"u, v","u, v"\n1,0,2\n', r"a.csv: 2 columns are called 'u, v'"),
    ],
)
def test_headers_and_lines_that_do_not_fit(tmp_path: Path, name: str, content: str, message: str) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(DataError, match=message) as caught:
        load_dataset(DataSettings(path=name, label="y"), base=tmp_path)
    assert "polars" not in str(caught.value)
    assert "truncate" not in str(caught.value)


def test_a_column_that_is_left_out_may_hold_anything(tmp_path: Path) -> None:
    write(with_column("sum", lambda i: 1e300 * i), tmp_path / "a.csv")
    settings = DataSettings(path="a.csv", id="id", label="bad", leave_out=("sum",))
    assert load_dataset(settings, base=tmp_path).columns == ("age", "town")


def test_a_test_file_without_a_column(tmp_path: Path) -> None:
    write(people(), tmp_path / "a.csv")
    rows = people(5)
    del rows["age"]
    write(rows, tmp_path / "b.csv")
    with pytest.raises(DataError, match=r"b.csv has no column 'age', which .*a.csv has"):
        load_dataset(DataSettings(path="a.csv", test_path="b.csv", label="bad"), base=tmp_path)


def test_nothing_but_labels(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("y\n" + "0\n1\n" * 5)
    with pytest.raises(CrosshatchError, match="2 silos for 0 columns"):
        build(DataSettings(path="a.csv", label="y"), FederationSettings(), base=tmp_path, seed=0)


def test_numbers_with_a_slip_are_noted(tmp_path: Path) -> None:
    rows = people() | {"age": [*map(str, range(17)), "oops", "nan", ""]}
    write(rows, tmp_path / "a.csv")
    dataset = load_dataset(DataSettings(path="a.csv", id="id", label="bad"), base=tmp_path)
    assert [str(note) for note in dataset.notes if note.is_warning] == [
        f"{tmp_path / 'a.csv'}: column 'age' is text because of 1 value like 'oops' among numbers: each of its values "
        "becomes a category; add words that mean a missing value to data.csv.nulls"
    ]


def test_a_negative_split_seed() -> None:
    with pytest.raises(ConfigError, match=r"data\.split_seed = -1: a seed is at least 0"):
        load_dataset(DataSettings(name="wine", split_seed=-1))


def test_settings_for_known_sets_only(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"data.label is for your own files"):
        load_dataset(DataSettings(name="wine", label="y"), base=tmp_path)


@pytest.mark.parametrize("column", ["weight", "label"])
def test_decimal_commas_are_numbers_and_named(tmp_path: Path, column: str) -> None:
    other = "label" if column == "weight" else "weight"
    lines = [f'"{60 + i},{i % 10}",{i % 2}' for i in range(20)]
    (tmp_path / "people.csv").write_text(f"{column},{other}\n" + "\n".join(lines))
    dataset = load_dataset(DataSettings(path="people.csv", label="label"), base=tmp_path)
    assert f"'{column}': numbers with decimal comma, thousands points: '60,0' is read as 60 " in str(dataset.notes[0])
    assert dataset.target == ("binary" if column == "weight" else "regression")
    assert isinstance(dataset.train.x, pl.DataFrame)
    found = dataset.train.x[column].to_list() if column == "weight" else dataset.train.y.tolist()
    assert set(found) < {60 + i + i % 10 / 10 for i in range(20)}


def test_codes_with_commas_may_be_categories(tmp_path: Path) -> None:
    lines = [f'"{i % 3},{i % 2}",{i % 2}' for i in range(20)]
    (tmp_path / "codes.csv").write_text("code,label\n" + "\n".join(lines))
    settings = DataSettings(path="codes.csv", label="label", categorical=("code",))
    assert load_dataset(settings, base=tmp_path).columns == ("code",)
    (tmp_path / "words.csv").write_text(
        "code,label\n" + "\n".join([*(f"w{i % 3},{i % 2}" for i in range(9)), '"1,5",0'])
    )
    assert load_dataset(DataSettings(path="words.csv", label="label"), base=tmp_path).columns == ("code",)


@pytest.mark.parametrize(
    ("written", "read"),
    [
        (["3", "20", "-1", "0"], [3, 20, -1, 0]),
        (["3.0", "20.0", "-1.0", "0.0"], [3, 20, -1, 0]),
        (["007", "7", "070", "1"], ["007", "7", "070", "1"]),
        (["1.10", "1.1", "2.0", "3"], ["1.10", "1.1", "2.0", "3"]),
        (["12345678901234567890", "12345678901234567891", "1", "2"], None),
        (["+5", "5", "1e3", "1000"], ["+5", "5", "1e3", "1000"]),
    ],
)
def test_ids_are_numbers_only_where_nothing_is_lost(
    tmp_path: Path, written: list[str], read: list[int] | list[str] | None
) -> None:
    lines = [f"{name},{i},{i % 2}" for i, name in enumerate(written)]
    (tmp_path / "a.csv").write_text("\n".join(["id,x,y", *lines]))
    dataset = load_dataset(DataSettings(path="a.csv", id="id", label="y", test_fraction=0.5), base=tmp_path)
    assert dataset.train.ids is not None
    assert dataset.test.ids is not None
    found = [*dataset.train.ids.tolist(), *dataset.test.ids.tolist()]
    assert sorted(found) == sorted(written if read is None else read)


def test_a_number_of_twenty_digits_is_a_feature_like_any_other(tmp_path: Path) -> None:
    rows = "\n".join(f"{12345678901234567890 + i * 10**19},{i},{i % 2}" for i in range(8))
    (tmp_path / "a.csv").write_text(f"large,x,y\n{rows}\n")
    data = build(DataSettings(path="a.csv", label="y"), FederationSettings(silos=2), base=tmp_path, seed=0)
    assert data.silos[0].train.isfinite().all()
