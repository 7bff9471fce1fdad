"""Where the shared data sets are, for the tests that need them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import Phase, settings

from crosshatch.runtime.needed import NEW_TLS_ONLY
from tests.support.data_folder import BESIDE, Need, why_not

os.environ.update(NEW_TLS_ONLY)  # before the tests of some tracker import grpc

# For `make faults`, where it matters that a test fails, and not with which smallest example.
settings.register_profile("faults", settings.get_profile("ci"), phases=(Phase.explicit, Phase.generate))

NAMED = os.environ.get("CROSSHATCH_DATA")


@pytest.fixture(autouse=True)
def no_data_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands find no data folder but the one a test gives them: what a user's own holds decides no test."""
    monkeypatch.delenv("CROSSHATCH_DATA", raising=False)


@pytest.fixture(scope="session")
def need() -> Need:
    """`need("mnist")` is the folder that holds this set, and skips the test where none does.

    It is that of CROSSHATCH_DATA, which may be a user's own, or `shared/data` beside the repository.
    """
    folder = Path(NAMED) if NAMED else BESIDE

    def holding(name: str) -> Path:
        if reason := why_not(folder, name):
            pytest.skip(reason)
        return folder

    return holding
