"""A small config to vary, and runs of it."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from crosshatch.runs.config import Config, decode_config
from tests.support.run_configs import TABLES, MakeConfig


@pytest.fixture
def make_config() -> MakeConfig:
    """`make_config(run={"rounds": 3})` is the small config with those keys changed."""

    def make(**sections: dict[str, Any]) -> Config:
        tables = copy.deepcopy(TABLES)
        for section, keys in sections.items():
            tables[section] = tables.get(section, {}) | keys
        return decode_config(tables)

    return make


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """Where a run may go; not there yet, and neither is the folder above it."""
    return tmp_path / "runs" / "one"
