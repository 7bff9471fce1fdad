"""One file per silo, against a join written as a loop."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from crosshatch.data.build import build, load_dataset
from crosshatch.data.data_settings import DataSettings, FederationSettings, SiloSettings
from crosshatch.errors import CrosshatchError

BANK = SiloSettings("bank", path="bank.csv")
SHOP = SiloSettings("shop", path="shop.csv")
DATA = DataSettings(id="id", label="y")


def write(folder: Path, bank: list[int], shop: list[int]) -> None:
    pl.DataFrame({"id": bank, "age": [i * 10 for i in bank], "y": [i % 2 for i in bank]}).write_csv(folder / "bank.csv")
    pl.DataFrame({"id": shop, "age": [i * 7 for i in shop], "spent": [-i for i in shop]}).write_csv(folder / "shop.csv")


@given(
    bank=st.lists(st.integers(0, 40), min_size=15, max_size=40, unique=True),
    shop=st.lists(st.integers(0, 40), min_size=30, max_size=41, unique=True),
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25)
def test_common_ids_in_ascending_order(tmp_path: Path, bank: list[int], shop: list[int]) -> None:
    both = sorted(set(bank) & set(shop))
    if len({i % 2 for i in both}) < 2 or min(sum(i % 2 == k for i in both) for k in (0, 1)) < 2:
        return
    write(tmp_path, bank, shop)
    dataset = load_dataset(DATA, federation=FederationSettings(silos=(BANK, SHOP)), base=tmp_path)
    assert dataset.columns == ("bank.age", "shop.age", "spent")
    assert dataset.groups == ("bank", "shop", "shop")
    seen = []
    for part in (dataset.train, dataset.test):
        assert part.ids is not None
        assert (np.diff(part.ids) > 0).all()
        assert isinstance(part.x, pl.DataFrame)
        for row, key in enumerate(part.ids.tolist()):
            assert part.x.row(row) == (key * 10, key * 7, -key)
            assert part.y[row] == key % 2
        seen += part.ids.tolist()
    assert sorted(seen) == both
    dropped = [str(note) for note in dataset.notes if note.code == "dropped"]
    assert len(dropped) == (len(bank) > len(both)) + (len(shop) > len(both))
    if len(bank) > len(both):
        assert f"{len(bank) - len(both)} of {len(bank)} rows of bank.csv dropped" in dropped[0]


def test_every_silo_holds_the_columns_of_its_file(tmp_path: Path) -> None:
    write(tmp_path, list(range(30)), list(range(30)))
    data = build(DATA, FederationSettings(silos=(BANK, SHOP), labels="bank"), base=tmp_path, seed=1)
    assert [silo.features for silo in data.silos] == [("bank.age",), ("shop.age", "spent")]
    some = SiloSettings("shop", path="shop.csv", columns=("age",))
    data = build(DATA, FederationSettings(silos=(BANK, some)), base=tmp_path, seed=1)
    assert data.silos[1].features == ("shop.age",)
    assert "1 columns are in no silo: spent" in [str(note) for note in data.notes]


def test_ids_as_numbers_here_and_text_there(tmp_path: Path) -> None:
    write(tmp_path, list(range(30)), list(range(30)))
    pl.read_csv(tmp_path / "shop.csv").with_columns(pl.col("id").cast(pl.String)).write_parquet(tmp_path / "s.parquet")
    silos = (BANK, SiloSettings("shop", path="s.parquet"))
    assert len(load_dataset(DATA, federation=FederationSettings(silos=silos), base=tmp_path).train) == 24


def test_ids_are_joined_as_they_are_written(tmp_path: Path) -> None:
    """One odd id makes text of a file's ids; the others must still find each other, and 007 must not find 7."""
    names = [f"{i:03}" for i in range(30)]
    rows = [f"{name},{i},{i % 2}" for i, name in enumerate(names)]
    (tmp_path / "bank.csv").write_text("\n".join(["id,age,y", *rows, "T-1,1,1", "7,2,0"]))
    (tmp_path / "shop.csv").write_text("\n".join(["id,spent", *(f"{name},{i}" for i, name in enumerate(names))]))
    dataset = load_dataset(DATA, federation=FederationSettings(silos=(BANK, SHOP)), base=tmp_path)
    assert dataset.train.ids is not None
    assert dataset.test.ids is not None
    assert sorted([*dataset.train.ids.tolist(), *dataset.test.ids.tolist()]) == names


def test_an_id_column_of_another_name_test_files_and_a_label_file(tmp_path: Path) -> None:
    for stem, keys in (("train", range(20)), ("test", range(50, 58))):
        pl.DataFrame({"who": keys, "a": [float(k) for k in keys]}).write_csv(tmp_path / f"one_{stem}.csv")
        pl.DataFrame({"id": keys, "b": [float(-k) for k in keys]}).write_csv(tmp_path / f"two_{stem}.csv")
        pl.DataFrame({"id": keys, "y": [k % 2 for k in keys]}).write_csv(tmp_path / f"labels_{stem}.csv")
    silos = (
        SiloSettings("one", path="one_train.csv", test_path="one_test.csv", id="who"),
        SiloSettings("two", path="two_train.csv", test_path="two_test.csv"),
    )
    settings = DataSettings(id="id", label="y", path="labels_train.csv", test_path="labels_test.csv")
    dataset = load_dataset(settings, federation=FederationSettings(silos=silos), base=tmp_path)
    assert (len(dataset.train), len(dataset.test), dataset.columns) == (20, 8, ("a", "b"))
    assert dataset.test.y.tolist() == [k % 2 for k in range(50, 58)]


@pytest.mark.parametrize(
    ("silos", "changes", "message"),
    [
        ((BANK, SiloSettings("shop")), {}, "silo 'shop' has no path but others have one"),
        ((BANK, SiloSettings("bank", path="shop.csv")), {}, "silo name 'bank': names must be unique"),
        ((BANK, SHOP), {"id": None}, "bank.csv: no id column is named"),
        ((BANK, SHOP), {"id": "iid"}, "bank.csv: unknown id column 'iid': did you mean 'id'"),
        ((BANK, SHOP), {"label": None}, "no label column is named"),
        ((BANK, SHOP), {"label": "z"}, "no label column 'z' in .*bank.csv, .*shop.csv"),
        ((BANK, SHOP), {"label": "age"}, "label 'age' is in two files, .*bank.csv and .*shop.csv"),
        ((BANK, SHOP), {"name": "wine"}, "data.name = 'wine', but silos have files of their own"),
        ((BANK, SHOP), {"test_path": "bank.csv"}, "data.test_path is given and no silo has a test_path"),
        ((BANK, SiloSettings("shop", path="far.csv")), {}, "the ids do not overlap.*check the id columns"),
        ((BANK, SiloSettings("shop", path="twice.csv")), {}, "twice.csv: id '3' in column 'id' occurs 2 times"),
        ((BANK, SiloSettings("shop", path="none.csv")), {}, "no file .*none.csv"),
        ((BANK, SiloSettings("shop", path="shop.csv", test_path="shop.csv")), {}, "silo 'bank' has no test_path"),
    ],
)
def test_mistakes(
    tmp_path: Path, silos: tuple[SiloSettings, ...], changes: dict[str, str | None], message: str
) -> None:
    write(tmp_path, list(range(20)), list(range(20)))
    pl.DataFrame({"id": range(100, 120), "b": range(20)}).write_csv(tmp_path / "far.csv")
    pl.DataFrame({"id": [3, *range(1, 20)], "b": range(20)}).write_csv(tmp_path / "twice.csv")
    data = DataSettings(**{"id": "id", "label": "y", **changes})  # type: ignore[arg-type]
    with pytest.raises(CrosshatchError, match=message) as caught:
        build(data, FederationSettings(silos=silos), base=tmp_path, seed=0)
    assert "\n" not in str(caught.value)


def test_labels_in_another_silos_file(tmp_path: Path) -> None:
    write(tmp_path, list(range(20)), list(range(20)))
    with pytest.raises(CrosshatchError, match=r"federation.labels = 'shop', but label 'y' is in .*bank.csv"):
        build(DATA, FederationSettings(silos=(BANK, SHOP), labels="shop"), base=tmp_path, seed=0)
    with pytest.raises(
        CrosshatchError, match=r"federation.labels = 'x' is not a silo: use 'shared' or one of bank, shop"
    ):
        build(DATA, FederationSettings(silos=(BANK, SHOP), labels="x"), base=tmp_path, seed=0)
