"""The trackers that `run.track` names: watchers that pass a run on to the tools of others."""

from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path

from crosshatch.errors import ConfigError
from crosshatch.runs.tracking.mlflow_store import MlflowStore
from crosshatch.runs.tracking.tensorboard_store import TensorBoardStore
from crosshatch.runs.tracking.tracker import Account, Tracker, TrackerStore
from crosshatch.runs.watcher import Watcher, Watchers

_STORES: dict[str, Callable[[Path, Account], TrackerStore]] = {"tensorboard": TensorBoardStore, "mlflow": MlflowStore}


def require_trackers(names: Sequence[str]) -> None:
    """Refuse those whose packages are not installed; which names there are, the settings know."""
    for name in names:
        spec = find_spec(name)
        if spec is None or spec.origin is None:  # a folder of that name, with logs perhaps, is not the package
            raise ConfigError(
                f"run.track has '{name}', and the package {name} is not installed: pip install -e "
                "'.[tracking]' in Crosshatch's folder, or leave it out of run.track"
            )


def with_trackers(names: Sequence[str], watcher: Watcher | None) -> Watcher:
    """The watcher and these trackers as one, nobody perhaps."""
    if watcher is not None and not isinstance(watcher, Watcher):
        raise ConfigError(
            f"watcher = {type(watcher).__name__}: it is to be an object of a class that inherits from "
            "crosshatch.Watcher"
        )
    require_trackers(names)
    first = Watcher() if watcher is None else watcher
    return Watchers([*(Tracker(name, _STORES[name], first.warned) for name in names), first]) if names else first
