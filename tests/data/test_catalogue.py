"""Known sets: their checks pass on the real files, fail on others, and their official orders are kept."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from crosshatch.data.build import build, load_dataset
from crosshatch.data.data_settings import DataSettings, FederationSettings, SiloSettings
from crosshatch.data.public_sets.catalogue import KNOWN, check, rows
from crosshatch.data.public_sets.in_folder import locate
from crosshatch.errors import DataError
from tests.support.data_folder import BESIDE, Need, why_not


@pytest.mark.parametrize("name", sorted(KNOWN))
def test_the_files_are_what_was_published(need: Need, name: str) -> None:
    findings = check(name, BESIDE if locate(BESIDE, name).is_file() else need(name))
    assert len(findings) >= 4
    assert [finding for finding in findings if not finding.ok] == []


def test_another_file_of_that_name_fails_its_checks(tmp_path: Path) -> None:
    np.savez(tmp_path / "madelon.npz", x=np.zeros((5, 3)), y=np.arange(5) % 2)
    findings = check("madelon", tmp_path)
    assert [finding.ok for finding in findings] == [False] * 4
    assert findings[0].found == "5 x 3"
    row = next(row for row in rows(tmp_path) if row.name == "madelon")
    assert (row.present, row.passed, row.checks) == (True, 0, 4)
    (tmp_path / "arcene.npz").write_bytes(b"")
    row = next(row for row in rows(tmp_path) if row.name == "arcene")
    assert (row.present, row.passed, row.checks) == (True, 0, 1)


def test_sets_of_ones_own_are_not_taken_for_published_ones(tmp_path: Path) -> None:
    np.savez(tmp_path / "madelon.npz", x=np.zeros((5, 3)), y=np.arange(5) % 2)
    (tmp_path / "arcene.npz").write_bytes(b"")
    assert "madelon in" in why_not(tmp_path, "madelon")
    assert "is not the published one" in why_not(tmp_path, "madelon")
    assert "arcene.npz" in why_not(tmp_path, "arcene")
    assert why_not(tmp_path, "mnist").startswith("no mnist in")


def test_a_file_without_the_arrays_fails_its_checks(tmp_path: Path) -> None:
    np.savez(tmp_path / "physionet2012.npz", z=np.zeros(3))
    assert {finding.ok for finding in check("physionet2012", tmp_path)} == {False}


def test_the_list_without_a_folder() -> None:
    listed = rows(None)
    assert {row.name for row in listed} == set(KNOWN) | {"breast_cancer", "digits", "wine", "diabetes", "mtcd_ridge"}
    assert all(row.licence and row.shape and row.get for row in listed)
    assert [row.name for row in listed if row.present] == ["breast_cancer", "digits", "wine", "diabetes", "mtcd_ridge"]
    with pytest.raises(DataError, match="unknown data set 'minst': did you mean 'mnist'"):
        check("minst", Path())


@pytest.mark.parametrize(("name", "first"), [("madelon", 2000), ("arcene", 100)])
def test_official_orders(need: Need, name: str, first: int) -> None:
    raw = np.load(need(name) / f"{name}.npz")
    dataset = load_dataset(name, need(name))
    assert (len(dataset.train), len(dataset.test)) == (first, len(raw["y"]) - first)
    assert (dataset.train.y == raw["y"][:first]).all()
    assert isinstance(dataset.test.x, pl.DataFrame)
    np.testing.assert_array_equal(dataset.test.x["x7"].to_numpy(), raw["x"][first:, 7])


def test_pieces_of_a_recording_never_straddle(need: Need) -> None:
    dataset = load_dataset(DataSettings(name="epileptic_seizure", positive=1), need("epileptic_seizure"))
    assert set(dataset.train.extra["recording"]).isdisjoint(dataset.test.extra["recording"])
    assert (dataset.target, len(dataset.train), len(dataset.test)) == ("binary", 9200, 2300)
    assert dataset.test.y.sum() == 460
    assert all(name.startswith("S") == bool(y) for name, y in zip(dataset.test.extra["recording"], dataset.test.y))  # noqa: B905


def test_physionet_by_hospital_unit_with_static_as_a_fourth_silo(need: Need) -> None:
    raw = np.load(need("physionet2012") / "physionet2012.npz")
    silos = tuple(
        SiloSettings(name, groups=(name,)) for name in ("vitals", "laboratory", "respiratory_fluid", "static")
    )
    settings = DataSettings(name="physionet2012", impute="mean", clip=4.0, categorical=("ICUType",))
    data = build(settings, FederationSettings(silos=silos, clients=20), need("physionet2012"), seed=1)
    assert [tuple(silo.train.shape) for silo in data.silos[:3]] == [(4000, 48, 22), (4000, 48, 36), (4000, 48, 16)]
    static = data.silos[3]
    assert static.features[:2] == ("Age", "Gender")
    assert {f"ICUType={k}" for k in (1, 2, 3, 4)} <= set(static.features)
    codes = raw["static_test"][:, 3]
    assert (static.test[:, static.features.index("ICUType=3")].numpy() == (codes == 3)).all()
    assert all(bool(np.isfinite(silo.test.numpy()).all()) for silo in data.silos)
    assert data.silos[0].train[..., :11].abs().max() <= 4.0001


def test_mnist_halves(need: Need) -> None:
    raw = np.load(need("mnist") / "mnist.npz")
    data = build(DataSettings(name="mnist", limit=500), FederationSettings(split="halves"), need("mnist"), seed=1)
    assert [(silo.name, tuple(silo.train.shape)) for silo in data.silos] == [
        ("left", (500, 1, 28, 14)),
        ("right", (500, 1, 28, 14)),
    ]
    right = raw["x_test"][:, :, 14:]
    scale = data.silos[1].test[:, 0].numpy()
    assert np.corrcoef(right.ravel(), scale.ravel())[0, 1] == pytest.approx(1)
    assert data.y_test.tolist() == raw["y_test"].tolist()


def test_superconductivity_by_property(need: Need) -> None:
    silos = (SiloSettings("mass", groups=("atomic_mass", "composition")), SiloSettings("heat", groups=("FusionHeat",)))
    data = build(
        DataSettings(name="superconductivity"), FederationSettings(silos=silos), need("superconductivity"), seed=1
    )
    assert [silo.train.shape[1] for silo in data.silos] == [11, 10]
    assert (data.target, data.classes) == ("regression", 0)
    assert "60 columns are in no silo" in str(data.notes[0])
