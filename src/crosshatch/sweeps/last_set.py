"""The data set that a process has read last: jobs of a sweep mostly read the same one."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crosshatch.runs.config import Config

if TYPE_CHECKING:
    from crosshatch.data.dataset import Dataset


@dataclass
class LastSet:
    """Keeps one named set, for as long as its settings are asked for and its file stays as it was."""

    known: Any = None
    dataset: Dataset | None = None

    def load(self, config: Config, folder: Path | None) -> Dataset:
        """As `load` of a run; people's own files are read every time."""
        from crosshatch.data.reading.sources import require_named  # late: whoever hands out jobs need not wait
        from crosshatch.runs.identity.run_data import load

        if config.data.name is None:
            return load(config, folder)
        path = require_named(config.data.name, folder)
        written = None if path is None else path.stat()
        stamp = None if written is None else (written.st_mtime_ns, written.st_size)
        asked = (config.data, config.federation.silos, path, stamp)  # silos may ask what no named set has
        if self.dataset is None or self.known != asked:
            self.known, self.dataset = None, None  # before another is read: two may be too large
            self.dataset = load(config, folder)
            self.known = asked
        return self.dataset
