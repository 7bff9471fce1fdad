"""A small config, and an executor that works jobs off in this process."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.sweep_executors import Bench


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)
