"""Who is told how a run goes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from crosshatch.runs.prepare import Prepared


class Watcher(Protocol):
    """Somebody to tell how it goes."""

    def tell(self, text: str) -> None:
        """What is tried out or was chosen before the first round."""
        ...

    def begin(self, prepared: Prepared, path: Path) -> None:
        """Everything was checked; rounds follow."""
        ...

    def advance(self, round: int) -> None:
        """So many rounds are done."""
        ...

    def evaluated(self, row: Mapping[str, Any]) -> None:
        """A line of metrics.jsonl."""
        ...

    def warned(self, text: str) -> None:
        """The run goes on, though it has diverged."""
        ...
