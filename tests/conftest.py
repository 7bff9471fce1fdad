"""Where the shared data sets are, for the tests that need them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import Phase, settings

# For `make faults`, where it matters that a test fails, and not with which smallest example.
settings.register_profile("faults", settings.get_profile("ci"), phases=(Phase.explicit, Phase.generate))


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder of CROSSHATCH_DATA, or `shared/data` beside the repository; skips where there is neither."""
    named = os.environ.get("CROSSHATCH_DATA")
    folder = Path(named) if named else Path(__file__).resolve().parents[2] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"no data folder {folder}: set CROSSHATCH_DATA to run this test")
    return folder
