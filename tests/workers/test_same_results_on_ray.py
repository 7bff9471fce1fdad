"""The small configs that compare trees of the code, trained by 1, 2 and 3 actors of Ray: the runs of one process."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from benchmarks.same_configs import CONFIGS
from benchmarks.same_results import difference, write
from crosshatch.workers.hire import Hired
from crosshatch.workers.ray_crew import RayWorkers

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("ray") is None, reason="Ray is not installed: pip install -e '.[ray]'"),
]
ON_GRAPHS = {name for name in CONFIGS if CONFIGS[name]["algorithm"]["name"] in ("stcd", "mtcd", "dcpa")}


@pytest.fixture(scope="module", params=[1, 2, 3], ids=lambda count: f"{count} workers")
def actors(request: pytest.FixtureRequest) -> Iterator[RayWorkers]:
    with RayWorkers(request.param) as crew:
        yield crew


@pytest.fixture(scope="module")
def inline(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The run of a config by pieces in this process, computed once."""
    folder = tmp_path_factory.mktemp("inline")

    @cache
    def run(name: str) -> Path:
        write(folder, [name], lambda _: None, workers=0)
        return folder / name

    return run


@pytest.mark.parametrize("name", [name for name in CONFIGS if name not in ON_GRAPHS])
def test_same_run(
    name: str, actors: RayWorkers, inline: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Evaluations, bytes, checkpoint and model, to the last bit."""
    wanted = inline(name)

    @contextmanager
    def hired(run: Any, threads: int, load: Any, ray: str | None = None) -> Iterator[Hired]:  # noqa: ARG001
        yield Hired(actors, load)

    monkeypatch.setattr("crosshatch.runs.train.hired", hired)
    write(tmp_path, [name], lambda _: None, workers=actors.count)
    assert difference(wanted, tmp_path / name) is None
    assert json.loads((tmp_path / name / "summary.json").read_text())["workers"]["workers"] == actors.count


def test_the_others_are_refused(tmp_path: Path) -> None:
    said: list[str] = []
    write(tmp_path, sorted(ON_GRAPHS), said.append, workers=2)
    assert len(said) == len(ON_GRAPHS) == 5
    assert all("sends along a graph: leave out run.workers" in one for one in said)
