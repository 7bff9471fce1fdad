"""A federation from arrays is the one that a file of the same numbers gives."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch

from crosshatch import FederationSettings, SiloSettings, federate, federation_from_arrays, load_dataset
from crosshatch.data.data_settings import DataSettings
from crosshatch.errors import DataError

RNG = np.random.default_rng(0)
BANK, INSURER = RNG.normal(size=(60, 3)), RNG.normal(size=(60, 2))
Y = (BANK[:, 0] + INSURER[:, 0] > 0).astype(int)


def test_the_same_as_from_a_file(tmp_path: Path) -> None:
    columns = {f"bank.{k}": BANK[:, k] for k in range(3)} | {f"insurer.{k}": INSURER[:, k] for k in range(2)}
    pl.DataFrame({**columns, "y": Y}).write_csv(tmp_path / "rows.csv")
    silos = (SiloSettings("bank", columns=("bank.*",)), SiloSettings("insurer", columns=("insurer.*",)))
    settings = DataSettings(path=str(tmp_path / "rows.csv"), label="y", validation=0.2)
    federation = FederationSettings(silos=silos, clients=2, labels="bank")
    expected = federate(load_dataset(settings, federation=federation), federation, seed=3)
    found = federation_from_arrays(
        {"bank": BANK, "insurer": INSURER}, Y, labels="bank", clients=2, validation=0.2, seed=3
    )
    for one, other in zip(found.silos, expected.silos, strict=True):
        assert one.features == other.features
        for part in ("train", "test", "validation"):
            torch.testing.assert_close(one.rows(part), other.rows(part))
        assert (one.owners == other.owners).all()
    assert torch.equal(found.y_train, expected.y_train)
    assert torch.equal(found.y_test, expected.y_test)
    assert found.label_silo == "bank"


def test_frames_keep_their_names_and_text_is_encoded() -> None:
    frame = pl.DataFrame({"income": BANK[:, 0], "sector": ["a", "b", "c"] * 20})
    data = federation_from_arrays({"bank": frame, "insurer": INSURER}, pl.Series(Y))
    assert data.silos[0].features == ("bank.income", "bank.sector=a", "bank.sector=b", "bank.sector=c")


def test_frames_of_pandas_too() -> None:
    class Series:
        def __init__(self, values: np.ndarray) -> None:
            self.values = values

        def to_numpy(self) -> np.ndarray:
            return self.values

    class Frame:
        """What of a frame of pandas is asked for."""

        columns = ("income", "sector")

        def to_dict(self) -> dict[str, object]:
            return {}

        def __getitem__(self, name: str) -> Series:
            return Series(BANK[:, 0] if name == "income" else np.array(["a", "b"] * 30, dtype=object))

    data = federation_from_arrays({"bank": Frame(), "insurer": INSURER}, Series(Y))
    assert data.silos[0].features == ("bank.income", "bank.sector=a", "bank.sector=b")


def test_own_test_rows() -> None:
    test = ({"bank": BANK[:10], "insurer": INSURER[:10]}, Y[:10])
    data = federation_from_arrays({"bank": BANK, "insurer": INSURER}, Y, test=test)
    assert (len(data.y_train), len(data.y_test)) == (60, 10)


@pytest.mark.parametrize(
    ("silos", "y", "more", "message"),
    [
        ({}, Y, {}, "at least one silo"),
        ({"bank": BANK[:0]}, Y[:0], {}, "y is empty"),
        ({"bank": BANK[:50]}, Y, {}, "'bank' has 50 rows for 60 labels"),
        ({"bank": BANK[:, 0]}, Y, {}, r"array of 1 dimensions: give \(samples, columns\)"),
        ({"bank": BANK}, BANK, {}, "y has 2 dimensions"),
        ({"bank": BANK}, Y, {"imputing": "mean"}, "imputing"),
    ],
)
def test_what_is_refused(silos: dict[str, object], y: object, more: dict[str, object], message: str) -> None:
    with pytest.raises(DataError, match=message):
        federation_from_arrays(silos, y, **more)  # type: ignore[arg-type]
