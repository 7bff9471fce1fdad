"""The config of a small sweep, and waiting for its files."""

from __future__ import annotations

import time
from collections.abc import Callable

CONFIG = """
[data]
name = "wine"
validation = 0.2
[federation]
silos = 2
[algorithm]
name = "fedbcd"
local_steps = 2
step_size = 0.1
batch_size = 32
[evaluate]
every = 5
[run]
rounds = 10
"""


def wait_until(happened: Callable[[], object]) -> None:
    """Look again and again, for five minutes at most."""
    end = time.monotonic() + 300
    while not happened():
        assert time.monotonic() < end
        time.sleep(0.01)  # whoever is waited for may need the core
