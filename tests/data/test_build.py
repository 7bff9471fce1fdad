"""Loading and dividing in one go: shapes, types, determinism, and no leak between rows or silos."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
import polars as pl
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import datasets

from crosshatch.data.build import federate, load_dataset
from crosshatch.data.data_settings import DataSettings, FederationSettings, Preparation, SampleSplit, SiloSettings
from crosshatch.data.dataset import Dataset, Samples
from crosshatch.data.federated import merge_clients
from crosshatch.errors import CrosshatchError
from tests.support.built_tables import table

GROUPS = FederationSettings(silos=(SiloSettings("a", groups=("mean",)), SiloSettings("b", groups=("error", "worst"))))


@pytest.mark.parametrize(
    ("name", "shape", "target", "classes"),
    [
        ("breast_cancer", (569, 30), "binary", 2),
        ("digits", (1797, 8, 8), "multiclass", 10),
        ("wine", (178, 13), "multiclass", 3),
        ("diabetes", (442, 10), "regression", 0),
    ],
)
def test_built_in_sets(name: str, shape: tuple[int, ...], target: str, classes: int) -> None:
    dataset = load_dataset(name)
    assert (dataset.target, dataset.classes) == (target, classes)
    assert len(dataset.train) + len(dataset.test) == shape[0]
    assert len(dataset.test) == round(0.2 * shape[0])
    assert dataset.train.x.shape[1:] == shape[1:]
    reference = getattr(datasets, f"load_{name}")()
    if name != "digits":
        assert dataset.columns == tuple(reference.feature_names)
    else:
        assert np.concatenate([dataset.train.x, dataset.test.x]).sum() == pytest.approx(reference.images.sum() / 16)
    if target != "regression":
        np.testing.assert_allclose(
            np.bincount(dataset.test.y) / len(dataset.test), np.bincount(reference.target) / shape[0], atol=0.03
        )


def test_natural_groups_of_breast_cancer() -> None:
    data = federate(load_dataset("breast_cancer"), GROUPS, seed=1)
    assert data.silos[0].features[:2] == ("mean radius", "mean texture")
    assert [silo.train.shape[1] for silo in data.silos] == [10, 20]


@pytest.mark.parametrize(
    ("name", "dtype"), [("wine", torch.int64), ("breast_cancer", torch.float32), ("diabetes", torch.float32)]
)
def test_types(name: str, dtype: torch.dtype) -> None:
    data = federate(load_dataset(name), FederationSettings(silos=3, clients=4), seed=1)
    assert data.y_train.dtype == data.y_test.dtype == dtype
    for silo in data.silos:
        assert silo.train.dtype == silo.test.dtype == torch.float32
        assert silo.train.is_contiguous()
        assert silo.test.is_contiguous()
        assert silo.owners.dtype == np.int64
        assert (silo.clients, len(np.unique(silo.owners))) == (4, 4)
    assert [silo.name for silo in data.silos] == ["silo1", "silo2", "silo3"]


def test_silos_divide_differently_unless_aligned_and_always_the_same_way_again() -> None:
    dataset = table()
    first = federate(dataset, FederationSettings(clients=6), seed=1)
    assert (first.silos[0].owners != first.silos[1].owners).any()
    again = federate(dataset, FederationSettings(clients=6), seed=1)
    assert all((a.owners == b.owners).all() for a, b in zip(first.silos, again.silos, strict=True))
    other = federate(dataset, FederationSettings(clients=6), seed=2)
    assert (first.silos[0].owners != other.silos[0].owners).any()
    aligned = federate(dataset, FederationSettings(clients=6, aligned=True), seed=1)
    assert (aligned.silos[0].owners == aligned.silos[1].owners).all()


def test_changing_test_rows_changes_nothing_that_was_fitted() -> None:
    dataset = load_dataset("breast_cancer")
    assert isinstance(dataset.test.x, pl.DataFrame)
    before = federate(dataset, GROUPS, Preparation(clip=3.0), seed=1)
    wild = replace(dataset, test=replace(dataset.test, x=dataset.test.x.select(pl.all() * 1000 - 7)))
    after = federate(wild, GROUPS, Preparation(clip=3.0), seed=1)
    for a, b in zip(before.silos, after.silos, strict=True):
        assert torch.equal(a.train, b.train)
        assert not torch.equal(a.test, b.test)


def test_changing_another_silos_columns_changes_nothing_here() -> None:
    dataset = load_dataset("breast_cancer")
    assert isinstance(dataset.train.x, pl.DataFrame)
    worst = [name for name in dataset.columns if name.startswith("worst")]
    other = dataset.train.x.with_columns(pl.col(worst) * 3 + 1)
    before = federate(dataset, GROUPS, Preparation(standardise=False), seed=1)
    after = federate(
        replace(dataset, train=replace(dataset.train, x=other)), GROUPS, Preparation(standardise=False), seed=1
    )
    assert torch.equal(before.silos[0].train, after.silos[0].train)
    assert torch.equal(before.silos[0].test, after.silos[0].test)
    assert (before.silos[0].owners == after.silos[0].owners).all()
    assert not torch.equal(before.silos[1].train, after.silos[1].train)


@pytest.mark.parametrize("kind", ["image", "sequence"])
def test_no_leak_in_images_and_sequences(kind: Any) -> None:
    random = np.random.default_rng(0)
    x, later = random.normal(size=(20, 4, 6)), random.normal(size=(5, 4, 6))
    names = () if kind == "image" else tuple("abcdef")
    dataset = Dataset("made", kind, Samples(x, np.arange(20) % 2), Samples(later, np.arange(5) % 2), "binary", 2, names)
    before = federate(dataset, FederationSettings(), seed=1)
    changed = x.copy()
    changed[..., 3:] *= 9
    after = federate(
        replace(dataset, train=replace(dataset.train, x=changed), test=replace(dataset.test, x=later * 50)),
        FederationSettings(),
        seed=1,
    )
    assert torch.equal(before.silos[0].train, after.silos[0].train)
    torch.testing.assert_close(
        before.silos[0].test, federate(dataset, FederationSettings(), seed=9).silos[0].test, rtol=0, atol=0
    )


def test_patches_windows_and_strips_reassemble_the_image() -> None:
    dataset = load_dataset("digits")
    bare = Preparation(standardise=False)
    assert isinstance(dataset.test.x, np.ndarray)
    four = federate(dataset, FederationSettings(split="patches", patches=(2, 2)), bare, seed=1)
    assert [silo.name for silo in four.silos] == ["patch0-0", "patch0-1", "patch1-0", "patch1-1"]
    top, bottom = (torch.cat([four.silos[i].test, four.silos[i + 1].test], dim=3) for i in (0, 2))
    np.testing.assert_array_equal(torch.cat([top, bottom], dim=2)[:, 0].numpy(), dataset.test.x)
    assert four.silos[1].features[:2] == ("r0c4", "r0c5")
    strips = federate(dataset, FederationSettings(silos=4), bare, seed=1)
    np.testing.assert_array_equal(torch.cat([s.test for s in strips.silos], dim=3)[:, 0].numpy(), dataset.test.x)
    silos = (SiloSettings("eye", window=(1, 3, 2, 6)), SiloSettings("foot", window=(6, 8, 0, 8)))
    parts = federate(dataset, FederationSettings(silos=silos), bare, seed=1)
    np.testing.assert_array_equal(parts.silos[0].test[:, 0].numpy(), dataset.test.x[:, 1:3, 2:6])
    assert [str(note) for note in parts.notes] == ["40 of 64 pixels are in no silo"]


def test_samples_by_column_labels_and_sizes() -> None:
    dataset = table()
    by_site = federate(dataset, FederationSettings(samples=SampleSplit("column", column="site")), seed=1)
    assert (by_site.silos[0].owners == dataset.train.extra["site"]).all()
    assert by_site.silos[0].clients == 5
    mixed = FederationSettings(
        silos=(
            SiloSettings("a", sizes=(10, 20, 30)),
            SiloSettings("b", clients=4, samples=SampleSplit("dirichlet", alpha=0.1)),
            SiloSettings("c", samples=SampleSplit("main_labels", main=1, main_share=1.0), clients=3),
            SiloSettings("d", clients="each"),
            SiloSettings("e"),
        ),
        clients=2,
    )
    data = federate(dataset, mixed, seed=1)
    assert [silo.clients for silo in data.silos] == [3, 4, 3, 60, 2]
    assert np.bincount(data.silos[0].owners).tolist() == [10, 20, 30]
    for client in range(3):
        assert len(np.unique(dataset.train.y[data.silos[2].owners == client])) == 1
    assert [silo.clients for silo in merge_clients(data).silos] == [1] * 5


@given(groups=st.integers(2, 5), clients=st.integers(1, 6), seed=st.integers(0, 99))
@settings(max_examples=25)
def test_clients_lie_within_groups(groups: int, clients: int, seed: int) -> None:
    data = federate(table(), FederationSettings(groups=groups, clients=clients, silos=3), seed=seed)
    assert data.groups is not None
    assert sorted(np.unique(data.groups).tolist()) == list(range(groups))
    for silo in data.silos:
        assert silo.clients == groups * clients
        assert (silo.owners // clients == data.groups).all()
    merged = merge_clients(data)
    assert all((silo.owners == data.groups).all() and silo.clients == groups for silo in merged.silos)


def test_hospitals_and_one_device_a_patient() -> None:
    hsgd = FederationSettings(
        silos=(SiloSettings("hospital"), SiloSettings("device", clients="each")),
        groups=3,
        group_samples=SampleSplit("main_labels", main=1),
    )
    data = federate(table(), hsgd, seed=1)
    assert [silo.clients for silo in data.silos] == [3, 60]
    assert data.groups is not None
    assert (data.silos[0].owners == data.groups).all()
    assert sorted(data.silos[1].owners.tolist()) == list(range(60))


@pytest.mark.parametrize(
    ("federation", "message"),
    [
        ({"labels": "nobody"}, "federation.labels = 'nobody' is not a silo: use 'shared' or one of silo1, silo2"),
        ({"silos": 0}, "federation.silos = 0"),
        ({"silos": ()}, "at least one silo"),
        ({"silos": 7}, "7 silos for 6 columns"),
        ({"clients": 61}, "silo 'silo1', federation.clients: 61 clients for 60 training samples"),
        ({"clients": 0}, "silo 'silo1', federation.clients: 0 clients"),
        ({"groups": 0}, "federation.groups = 0"),
        ({"groups": 10, "clients": 7}, "silo 'silo1', federation.clients: 7 clients for 6 training samples"),
        ({"split": "halves"}, "split = 'halves' is for images and data 'made' is a table"),
        ({"silos": 3, "split": "halves"}, "federation.silos = 3, but split = 'halves' makes 2"),
        ({"silos": (SiloSettings("a", window=(0, 1, 0, 1)),)}, "silo 'a' has a window"),
        ({"silos": (SiloSettings("a"), SiloSettings("a"))}, "names must be unique"),
        ({"silos": (SiloSettings("shared"),)}, "silo name 'shared'"),
        ({"silos": (SiloSettings("a", columns=("c0",)), SiloSettings("b", columns=("c0",)))}, "'c0' is in two silos"),
        ({"silos": (SiloSettings("a", columns=("c0",)), SiloSettings("b"))}, "silo 'b' has no columns"),
        ({"samples": SampleSplit(sizes=(1, 2))}, "sizes sum to 3 but there are 60"),
        ({"samples": SampleSplit("dirichlet", sizes=(30, 30))}, "sizes cannot be given for kind = 'dirichlet'"),
        ({"samples": SampleSplit("column")}, "needs samples.column"),
        ({"samples": SampleSplit("column", column="sit")}, "unknown column 'sit': did you mean 'site'"),
        ({"samples": SampleSplit("column", column="site"), "clients": 3}, "column 'site' has 5 values, not 3"),
    ],
)
def test_federations_that_cannot_be(federation: dict[str, Any], message: str) -> None:
    with pytest.raises(CrosshatchError, match=message) as caught:
        federate(table(), FederationSettings(**federation), seed=1)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("federation", "message"),
    [
        ({"silos": (SiloSettings("a", columns=("x",)),)}, "silo 'a' asks for columns, but data 'digits' has images"),
        ({"silos": (SiloSettings("a", window=(0, 1, 0, 1)), SiloSettings("b"))}, "silo 'b' has no window"),
        ({"silos": (SiloSettings("a"),), "split": "halves"}, "1 silos for 2 parts"),
        ({"split": "patches", "patches": (9, 1)}, "a patch would have no pixels"),
        ({"split": "patches", "patches": (0, 2)}, "at least one silo"),
        ({"silos": 9}, "a patch would have no pixels"),
        ({"patches": (2, 3)}, r"federation.patches = \[2, 3\], but split = 'columns'"),
    ],
)
def test_images_that_cannot_be_divided_so(federation: dict[str, Any], message: str) -> None:
    with pytest.raises(CrosshatchError, match=message):
        federate(load_dataset("digits"), FederationSettings(**federation), seed=1)


def test_label_skew_needs_classes() -> None:
    with pytest.raises(CrosshatchError, match="needs classes and this is regression"):
        federate(load_dataset("diabetes"), FederationSettings(samples=SampleSplit("dirichlet")), seed=1)


def test_static_and_more_in_one_silo() -> None:
    x, static = np.zeros((6, 2, 2)), pl.DataFrame({"s": [1.0, 2, 3, 4, 5, 6]})
    part = Samples(x, np.arange(6) % 2, extra={"static": static})
    dataset = Dataset("made", "sequence", part, part, "binary", 2, ("a", "b"), ("g", "g"))
    with pytest.raises(CrosshatchError, match="give 'static' a silo of its own"):
        federate(dataset, FederationSettings(silos=(SiloSettings("s", groups=("static", "g")),)), seed=1)
    data = federate(
        dataset, FederationSettings(silos=(SiloSettings("s", groups=("static",)), SiloSettings("r"))), seed=1
    )
    assert [silo.features for silo in data.silos] == [("s",), ("a", "b")]


def test_sections_of_a_config_become_settings() -> None:
    section = {
        "silos": [{"name": "bank", "columns": ["a"], "clients": "each"}, {"name": "shop", "sizes": [1, 2]}],
        "labels": "bank",
        "samples": {"kind": "dirichlet", "alpha": 1},
        "patches": [2, 3],
    }
    found = msgspec.convert(section, FederationSettings)
    assert found.silos == (
        SiloSettings("bank", columns=("a",), clients="each"),
        SiloSettings("shop", sizes=(1, 2)),
    )
    assert (found.samples, found.patches) == (SampleSplit("dirichlet", alpha=1.0), (2, 3))
    assert msgspec.convert({"silos": 3}, FederationSettings).silos == 3
    data = msgspec.convert({"name": "wine", "clip": 3, "positive": 1, "categorical": ["a"]}, DataSettings)
    assert data.preparation == Preparation(clip=3.0, categorical=("a",))
    with pytest.raises(msgspec.ValidationError, match="impute"):
        msgspec.convert({"impute": "guess"}, DataSettings)


def test_the_settings_preparation_is_used_and_an_explicit_one_wins(tmp_path: Any) -> None:
    values = [1.0, 2.0, None, 4.0, 100.0, 3.0, 5.0, 2.0, 1.0, 4.0]
    pl.DataFrame({"a": values, "b": range(10), "y": [0, 1] * 5}).write_csv(tmp_path / "own.csv")
    asked = DataSettings(path="own.csv", label="y", impute="median", indicators=False, standardise=False)
    dataset = load_dataset(asked, base=tmp_path)
    data = federate(dataset, FederationSettings(silos=2), seed=1)
    held = torch.cat([data.silos[0].train, data.silos[0].test]).flatten().tolist()
    assert isinstance(dataset.train.x, pl.DataFrame)
    known = dataset.train.x["a"].to_list()  # the median is that of the training rows
    median = float(np.median([value for value in known if value is not None]))
    assert sorted(held) == sorted(median if value is None else value for value in values)
    with pytest.raises(CrosshatchError, match="missing values"):
        federate(dataset, FederationSettings(silos=2), Preparation(), seed=1)
    zero = federate(dataset, FederationSettings(silos=2), Preparation(impute="zero", standardise=False), seed=1)
    assert 0.0 in torch.cat([zero.silos[0].train, zero.silos[0].test])[:, 0].tolist()


def test_silos_with_files_of_their_own_use_the_settings_preparation_too(tmp_path: Any) -> None:
    pl.DataFrame({"id": range(20), "a": [float(i) for i in range(20)], "y": [0, 1] * 10}).write_csv(tmp_path / "a.csv")
    pl.DataFrame({"id": range(20), "b": [float(i) for i in range(20)]}).write_csv(tmp_path / "b.csv")
    silos = (SiloSettings("a", path="a.csv", id="id"), SiloSettings("b", path="b.csv", id="id"))
    federation = FederationSettings(silos=silos, labels="a")
    dataset = load_dataset(DataSettings(label="y", standardise=False), federation=federation, base=tmp_path)
    data = federate(dataset, federation, seed=1)
    assert sorted(torch.cat([data.silos[1].train, data.silos[1].test]).flatten().tolist()) == list(range(20))


@pytest.mark.parametrize("key", ["silos", "clients", "groups", "branches"])
@pytest.mark.parametrize("value", [1.5, 2.0, True])
def test_whole_numbers_are_whole(key: str, value: Any) -> None:
    with pytest.raises(CrosshatchError, match=f"^federation.{key} = {value}: must be a whole number$"):
        federate(table(), FederationSettings(**{key: value}), seed=1)
    silo = SiloSettings("a", clients=value)
    with pytest.raises(CrosshatchError, match=f"^federation.silos 'a' clients = {value}: must be a whole number$"):
        federate(table(), FederationSettings(silos=(silo,)), seed=1)
    for name in ("limit", "split_seed"):
        with pytest.raises(CrosshatchError, match=f"^data.{name} = {value}: must be a whole number$"):
            load_dataset(DataSettings(name="wine", **{name: value}))


def test_a_negative_seed_is_refused() -> None:
    with pytest.raises(CrosshatchError, match="seed = -1: a seed is a whole number from 0 on"):
        federate(table(), FederationSettings(clients=2), seed=-1)
