"""Tests, and the examples in docstrings, never touch the home folder of whoever runs them."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest


def pytest_configure(config: pytest.Config) -> None:
    """The key of fingerprints is one of the tests' own; workers and commands that tests start inherit it."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # in the background of a shell: Ctrl-C would reach nobody
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if not hasattr(config, "workerinput"):
        folder = TemporaryDirectory(prefix="crosshatch-tests-")
        config.add_cleanup(folder.cleanup)
        os.environ["CROSSHATCH_KEY_FILE"] = str(Path(folder.name) / "fingerprint.key")
