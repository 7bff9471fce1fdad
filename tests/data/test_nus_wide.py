"""NUS-WIDE's public files, made small: five feature files, tags, and labels by concept."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from crosshatch.data.build import federate, load_dataset
from crosshatch.data.data_settings import DataSettings, FederationSettings, SiloSettings
from crosshatch.data.public_sets.catalogue import check, rows
from crosshatch.errors import DataError

WIDTHS = {"CH": 64, "CM55": 225, "CORR": 144, "EDH": 73, "WT": 128}
COUNTS = {"Train": 12, "Test": 6}


def write_set(folder: Path) -> dict[str, dict[str, np.ndarray[tuple[int, int], np.dtype[np.float64]]]]:
    """The files as they are published: spaces and tabs also at the end of lines, except in the label files."""
    rng, written = np.random.default_rng(5), {}
    for name in ("Low_Level_Features", "NUS_WID_Tags", "Groundtruth/TrainTestLabels"):
        (folder / "nus_wide" / name).mkdir(parents=True)
    for part, count in COUNTS.items():
        arrays = {name: rng.uniform(-1, 1, (count, width)).round(6) for name, width in WIDTHS.items()}
        for name, values in arrays.items():
            lines = [" ".join(f"{value:g}" for value in row) + " " for row in values]
            path = folder / "nus_wide" / "Low_Level_Features" / f"{part}_Normalized_{name}.dat"
            path.write_text("\n".join(lines) + "\n")
        arrays["tags"] = rng.integers(0, 2, (count, 1000)).astype(float)
        lines = ["\t".join(f"{value:g}" for value in row) + "\t" for row in arrays["tags"]]
        (folder / "nus_wide" / "NUS_WID_Tags" / f"{part}_Tags1k.dat").write_text("\n".join(lines) + "\n")
        for concept, shift in (("water", 0), ("sky", 1)):
            arrays[concept] = ((np.arange(count) + shift) % 2)[:, None].astype(float)
            text = "\n".join(f"{value:g}" for value in arrays[concept][:, 0]) + "\n"
            (folder / "nus_wide" / "Groundtruth" / "TrainTestLabels" / f"Labels_{concept}_{part}.txt").write_text(text)
        written[part] = arrays
    return written


def settings(concept: str | None = "water") -> DataSettings:
    return DataSettings(name="nus_wide", positive=concept, standardise=False)


def test_columns_are_those_of_the_files_and_labels_those_of_the_concept(tmp_path: Path) -> None:
    written = write_set(tmp_path)
    silos = (SiloSettings("tags", groups=("tags",)), SiloSettings("images", groups=("images",)))
    data = federate(load_dataset(settings(), tmp_path), FederationSettings(silos=silos, common=5), seed=1)
    assert [silo.train.shape[1] for silo in data.silos] == [1000, 634]
    assert data.class_names == ("not water", "water")
    for part, found in (("Test", data.silos[1].test), ("Test", data.silos[0].test)):
        names = ["tags"] if found.shape[1] == 1000 else list(WIDTHS)
        wanted = np.concatenate([written[part][name] for name in names], axis=1)
        assert np.allclose(found.numpy(), wanted, atol=1e-6)
    assert data.y_test.tolist() == written["Test"]["water"][:, 0].tolist()
    assert len(data.y_train) == 5
    assert data.alone is not None
    assert data.alone.x.shape == (7, 1000)


def test_listed_without_being_read(tmp_path: Path) -> None:
    assert [row.present for row in rows(tmp_path) if row.name == "nus_wide"] == [False]
    write_set(tmp_path)
    assert [row.present for row in rows(tmp_path) if row.name == "nus_wide"] == [True]
    assert check("nus_wide", tmp_path) == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda _: None, "name one by data.positive, for example sky, water"),
        (lambda folder: (folder / "Low_Level_Features" / "Test_Normalized_WT.dat").unlink(), "Test_Normalized_WT.dat"),
        (
            lambda folder: (folder / "Groundtruth/TrainTestLabels/Labels_water_Train.txt").write_text("1\n0\n"),
            "has 2 labels for the 12 rows",
        ),
        (
            lambda folder: (folder / "Groundtruth/TrainTestLabels/Labels_water_Train.txt").write_text("3\n" * 12),
            "not one zero or one per line",
        ),
        (lambda folder: (folder / "NUS_WID_Tags/Train_Tags1k.dat").write_text("a\tb\n" * 12), "is not numbers"),
    ],
)
def test_bad_files_are_named(tmp_path: Path, change: object, message: str) -> None:
    write_set(tmp_path)
    assert callable(change)
    change(tmp_path / "nus_wide")
    with pytest.raises(DataError, match=message):
        load_dataset(settings(None if "positive" in message else "water"), tmp_path)


def test_an_unknown_concept_is_refused(tmp_path: Path) -> None:
    write_set(tmp_path)
    with pytest.raises(Exception, match="'watr'"):
        load_dataset(settings("watr"), tmp_path)
