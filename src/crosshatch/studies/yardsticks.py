"""Boosted trees as work for the executor, beside a study's runs: on all columns, and on those of each silo."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from crosshatch.data.federated import FederatedData
from crosshatch.data.identity.fingerprint import Fingerprint
from crosshatch.errors import CrosshatchError
from crosshatch.runs.config import Config, config_text, decode_config, part_files
from crosshatch.runs.parts.part_files import started_from
from crosshatch.studies.kept import Kept, read_yardstick
from crosshatch.studies.study_folder import require_same_data
from crosshatch.studies.study_result import ALL_COLUMNS, YARDSTICKS, boosted_alone
from crosshatch.sweeps.jobs import Ended, LastSet


@dataclass(frozen=True)
class Yardstick:
    """Trees on the columns of some silos, whose scores go into a file of the study's folder."""

    name: str
    config: str
    home: str
    file: str
    folder: str | None
    silos: tuple[str, ...]
    data: Fingerprint | None
    rounds: int = 0
    threads: int = 1

    @property
    def path(self) -> Path:
        return Path(self.home) / YARDSTICKS / self.file

    def run(self, tell: Callable[[int], None], last: LastSet) -> Ended:  # noqa: ARG002 - it has no rounds
        """Read the rows, grow the trees, keep the scores."""
        from crosshatch.studies.boosted import boosted  # late: whoever hands out jobs need not wait for torch
        from crosshatch.studies.prepared import prepare_study

        config = decode_config(started_from(tomllib.loads(self.config), Path(self.home)))
        try:
            data, loss, fingerprint = prepare_study(config, None if self.folder is None else Path(self.folder))
            require_same_data(self.data, fingerprint, Path(self.home))
            boosted(data, loss, self.silos, self.path)
        except (CrosshatchError, ValueError) as error:  # of scikit-learn, too: one class only, and the like
            return Ended("failed", str(error))
        return Ended("finished")

    def broken(self, why: str) -> Ended:
        return Ended("failed", why)

    def read(self, data: FederatedData) -> Kept | None:
        """Its scores; None where they could not be had."""
        return read_yardstick(self.path, data.y_test, data.y_validation) if self.path.is_file() else None


def yardsticks(
    config: Config,
    data: FederatedData,
    silos: Sequence[str],
    fingerprint: Fingerprint | None,
    out: Path,
    folder: Path | None,
) -> list[Yardstick]:
    """All columns, then each silo alone; none where columns are not a table or several labels are asked for."""
    if data.target == "multilabel" or any(silo.train.dim() != 2 for silo in data.silos if silo.name in silos):
        return []
    text = config_text(config, part_files(config))
    where = None if folder is None else str(folder.resolve())
    sets = {ALL_COLUMNS: tuple(silos)} | {boosted_alone(silo): (silo,) for silo in silos}
    return [
        Yardstick(name, text, str(out.resolve()), f"{number}.safetensors", where, held, fingerprint)
        for number, (name, held) in enumerate(sets.items())
    ]
