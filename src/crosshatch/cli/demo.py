"""`crosshatch demo`."""
from __future__ import annotations
from pathlib import Path
def run_demo(out: Path | None) -> None:
    """Demo."""
