"""A yardstick from another family: gradient-boosted trees of scikit-learn, so that nobody is fooled by a weak model.

They are work for the executor beside a study's runs: on all columns, and on those of each silo. Learning rate, leaves
and the number of trees are those with the lowest loss on the validation rows; with these fixed, fitting has nothing
random in it, so one seed is enough.
"""

import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from safetensors.torch import load_file, save
from torch import Tensor

from crosshatch.data.federated import FederatedData, unweighted_labels
from crosshatch.data.identity.fingerprint import Fingerprint
from crosshatch.errors import CrosshatchError
from crosshatch.runs.config import Config, config_text, decode_config, part_files
from crosshatch.runs.files import write_whole
from crosshatch.runs.own_parts.part_files import started_from
from crosshatch.studies.intervals import Kept
from crosshatch.studies.methods import prepare_study
from crosshatch.studies.study_folder import require_same_data
from crosshatch.studies.study_result import ALL_COLUMNS, YARDSTICKS, boosted_alone
from crosshatch.sweeps.jobs import Ended, LastSet
from crosshatch.task.losses import Loss, unweighted

RATES, LEAVES, MOST_TREES = (0.03, 0.1), (4, 31), 200


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
        if not self.path.is_file():
            return None
        assert data.y_validation is not None
        found = load_file(self.path)
        return Kept(found["test"], data.y_test, found["validation"], data.y_validation)


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


def boosted(data: FederatedData, loss: Loss, silos: Sequence[str], path: Path) -> None:
    """Write scores of trees on the columns of these silos into a file."""
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor  # late: a second

    assert data.y_validation is not None
    held = [silo for silo in data.silos if silo.name in silos]
    train, test, validation = (
        np.concatenate([silo.rows(part).cpu().numpy() for silo in held], axis=1)
        for part in ("train", "test", "validation")
    )
    labels = unweighted_labels(data).cpu().numpy()
    best, lowest = (test[:, :0], validation[:, :0]), np.inf
    kind: Any = HistGradientBoostingRegressor if data.target == "regression" else HistGradientBoostingClassifier
    settings: dict[str, Any] = {"max_iter": MOST_TREES, "early_stopping": False, "random_state": 0}
    for rate, leaves in product(RATES, LEAVES):
        model = kind(learning_rate=rate, max_leaf_nodes=leaves, **settings).fit(train, labels)
        staged = model.staged_predict if data.target == "regression" else model.staged_decision_function
        losses = [_loss(scores, data.y_validation, loss) for scores in staged(validation)]
        trees = int(np.argmin(losses))
        if losses[trees] < lowest:
            lowest = losses[trees]
            best = (_at(staged(test), trees), _at(staged(validation), trees))
    kept = {name: _tensor(scores) for name, scores in zip(("test", "validation"), best, strict=True)}
    write_whole(path, save(kept))


def _loss(scores: npt.NDArray[np.float64], y: Tensor, loss: Loss) -> float:
    labels = y.double() if y.is_floating_point() else y
    return float(unweighted(loss).value(_tensor(scores), labels).mean())


def _at(stages: Any, trees: int) -> npt.NDArray[np.float64]:
    return next(np.array(scores) for number, scores in enumerate(stages) if number == trees)


def _tensor(scores: npt.NDArray[np.float64]) -> Tensor:
    found = torch.as_tensor(np.ascontiguousarray(scores), dtype=torch.float64)
    return found if found.dim() == 2 else found[:, None]
