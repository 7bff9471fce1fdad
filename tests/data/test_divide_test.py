"""Test samples dealt to clients: by the column that decides, or in proportion to what a client trains on."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from crosshatch.data.build import build, federate, load_dataset
from crosshatch.data.data_settings import DataSettings, FederationSettings, SampleSplit, SiloSettings
from crosshatch.data.dataset import Dataset
from crosshatch.data.federated import FederatedData, keep_samples, merge_clients
from crosshatch.errors import DataError, PartitionError
from crosshatch.protocol.members import pair
from tests.support.built_tables import table


def divide(dataset: Dataset, seed: int = 3, **settings: Any) -> FederatedData:
    return federate(dataset, FederationSettings(**settings), seed=seed, per_client=True)


def owners(data: FederatedData, silo: int = 0) -> npt.NDArray[np.int64]:
    found = data.silos[silo].test_owners
    assert found is not None
    return found


def test_nobody_asks_nobody_divides() -> None:
    dataset = table()
    plain, asked = federate(dataset, FederationSettings(clients=4), seed=3), divide(dataset, clients=4)
    assert plain.silos[0].test_owners is None
    for before, after in zip(plain.silos, asked.silos, strict=True):
        np.testing.assert_array_equal(before.owners, after.owners)  # the training samples stay where they are


def test_by_column_the_value_decides() -> None:
    dataset = table(n=80)
    data = divide(dataset, samples=SampleSplit("column", column="site"))
    training: Any = dataset.train.extra["site"]
    testing: Any = dataset.test.extra["site"]
    silo = data.silos[0]
    for row, value in enumerate(testing):
        (client,) = set(silo.owners[training == value])
        assert owners(data)[row] == client
        assert silo.client_names[client] == str(value)


def test_values_that_nobody_trains_on_are_nobodys() -> None:
    dataset = table(n=80)
    extra = {"site": np.array([7, 0] * 6)}
    data = divide(
        replace(dataset, test=replace(dataset.test, extra=extra)), samples=SampleSplit("column", column="site")
    )
    assert (owners(data)[::2] == -1).all()
    assert (owners(data)[1::2] >= 0).all()


def test_numbers_and_texts_of_one_value_are_one_client() -> None:
    dataset = table(n=80)
    extra = {"site": np.array(["0", "1", "x"] * 4)}
    data = divide(
        replace(dataset, test=replace(dataset.test, extra=extra)), samples=SampleSplit("column", column="site")
    )
    assert owners(data)[:3].tolist() == [0, 1, -1]


@pytest.mark.parametrize("sizes", [None, (10, 20, 30, 40, 42)])
def test_by_permutation_in_proportion(sizes: tuple[int, ...] | None) -> None:
    data = divide(load_dataset("wine"), clients=5, samples=SampleSplit(sizes=sizes))
    rows, n = len(data.y_test), len(data.y_train)
    for silo in data.silos:
        assert silo.test_owners is not None
        shares = np.bincount(silo.owners, minlength=5) * rows / n
        assert np.abs(np.bincount(silo.test_owners, minlength=5) - shares).max() < 1
    assert (owners(data, 0) != owners(data, 1)).any()


def test_the_seed_decides_and_aligned_silos_agree() -> None:
    dataset = load_dataset("wine")
    same = divide(dataset, clients=5, aligned=True)
    np.testing.assert_array_equal(owners(same, 0), owners(same, 1))
    np.testing.assert_array_equal(owners(same), owners(divide(dataset, clients=5, aligned=True)))
    assert (owners(same) != owners(divide(dataset, seed=4, clients=5, aligned=True))).any()


@pytest.mark.parametrize("kind", ["dirichlet", "main_labels"])
def test_by_class_in_proportion_within_each(kind: Any) -> None:
    data = divide(load_dataset("digits"), clients=6, samples=SampleSplit(kind, alpha=0.3))
    silo = data.silos[0]
    y_train, y_test = data.y_train.numpy(), data.y_test.numpy()
    for label in range(10):
        trained = np.bincount(silo.owners[y_train == label], minlength=6)
        tested = np.bincount(owners(data)[y_test == label], minlength=6)
        assert np.abs(tested - trained / trained.sum() * tested.sum()).max() < 1


def test_fewer_test_samples_than_clients() -> None:
    drawn = [owners(divide(table(), seed=seed, clients=20)) for seed in range(40)]
    counts = np.bincount(np.concatenate(drawn), minlength=20)
    assert counts.sum() == 40 * 12
    assert counts.min() > 0  # nobody is always left out


def test_one_client_per_sample() -> None:
    data = divide(table(), clients="each")
    assert np.bincount(owners(data)).max() == 1


@pytest.mark.parametrize("kind", ["permutation", "column", "dirichlet"])
def test_groups_come_first(kind: Any) -> None:
    split = SampleSplit(kind, column="site" if kind == "column" else None)
    data = divide(table(n=200), clients=3, groups=1 if kind == "column" else 4, group_samples=split)
    assert data.groups is not None
    group_of = {int(client): int(group) for client, group in zip(data.silos[0].owners, data.groups, strict=True)}
    one, other = ([group_of[int(client)] for client in owners(data, silo)] for silo in (0, 1))
    assert one == other  # a test sample is in one group, whoever has it there
    if kind == "column":
        sites: Any = table(n=200).test.extra["site"]
        assert one == sites.tolist()


def test_classes_that_a_group_does_not_train_on() -> None:
    """They are dealt out all the same."""
    dataset = table(n=30, classes=3)
    y = np.array([0] * 10 + [1] * 10 + [2] * 10)
    place = np.array([0] * 10 + [1] * 20)
    train = replace(dataset.train, y=y, extra={"site": place})
    test = replace(dataset.test, extra={"site": np.zeros(12, dtype=np.int64)})
    data = divide(
        replace(dataset, train=train, test=test),
        clients=2,
        samples=SampleSplit("dirichlet"),
        group_samples=SampleSplit("column", column="site"),
    )
    assert (owners(data) >= 0).all()
    assert set(owners(data)) <= set(data.silos[0].owners[data.groups == 0])


def test_silos_divided_otherwise() -> None:
    silos = (SiloSettings("a", clients=1), SiloSettings("b", samples=SampleSplit("column", column="site")))
    data = divide(table(), silos=silos)
    assert set(owners(data, 0)) == {0}
    assert set(owners(data, 1)) <= set(range(data.silos[1].clients))


def test_whoever_divides_anew_forgets() -> None:
    data = divide(table(), clients=3)
    assert merge_clients(data).silos[0].test_owners is None
    assert keep_samples(data, np.arange(20)).silos[0].test_owners is None
    np.testing.assert_array_equal(owners(pair(data), 1), owners(data, 0))


def test_a_column_with_gaps_in_the_test_rows_is_refused(tmp_path: Any) -> None:
    rows = [f"{i},{i % 7},{i % 3},{i % 2}" for i in range(60)]
    (tmp_path / "train.csv").write_text("\n".join(["id,x,site,y", *rows]))
    (tmp_path / "test.csv").write_text("\n".join(["id,x,site,y", "100,1,,0", "101,2,1,1"]))
    settings = DataSettings(path="train.csv", test_path="test.csv", id="id", label="y", impute="mean")
    federation = FederationSettings(silos=1, samples=SampleSplit("column", column="site"))
    with pytest.raises(DataError, match=r"silo 'silo1': samples.column: column 'site' has no value in row 1 of 2"):
        build(settings, federation, base=tmp_path, seed=0, per_client=True)


@pytest.mark.parametrize("given", [[0, 1, 2], [0, 5] * 6])
def test_test_owners_that_do_not_fit(given: list[int]) -> None:
    data = divide(table(), clients=3)
    bad = replace(data.silos[0], test_owners=np.array(given))
    with pytest.raises(PartitionError, match="test_owners up to"):
        replace(data, silos=(bad, *data.silos[1:]))
