"""Whether a change of the code changed a number: some thirty small runs before and after it, compared to the last bit.

    python -m benchmarks.same_results write DIR [--only NAME,NAME] [--workers N]
    python -m benchmarks.same_results compare DIR_A DIR_B

`write` trains the configs of `same_configs.py` as `crosshatch train` does and notes in DIR/NAME/kept.json what must not
change, with workers where so many are asked for (those are left out that workers refuse). `compare` prints a line a
config, and exits with 1 if any differ.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
from safetensors import safe_open

from benchmarks.same_configs import CONFIGS, tables
from crosshatch.errors import ConfigError, CrosshatchError, RunError
from crosshatch.runs.config import read_config

Kept = dict[str, dict[str, Any]]
"""What is kept of a run: by file, and inside it by dotted key; files whose differences come first, first."""

CHECKPOINT = "checkpoint/state.safetensors"
KEPT = "kept.json"
OF_THE_MACHINE = (
    "wall_seconds",
    "versions",
    "metrics_offset",
    "workers",
)  # the offset moves with the digits of wall_seconds
ABSENT = "absent"


def write(
    folder: Path, names: Sequence[str], report: Callable[[str], None] = print, *, workers: int | None = None
) -> None:
    """Run the configs of these names, each into a folder of its own."""
    from crosshatch.runs.train import train  # late: torch reads the number of threads when it is imported

    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        start = time.perf_counter()
        config = folder / f"{name}.toml"
        config.write_bytes(msgspec.toml.encode(tables(name)))
        try:
            changes = [] if workers is None else [f"run.workers={workers}"]
            outcome = train(read_config(config, changes), out=folder / name)
        except ConfigError as error:
            if workers is None or not str(error).startswith("run.workers"):
                raise
            report(f"{name}: {error}")
            continue
        (outcome.path / KEPT).write_text(json.dumps(keep(outcome.path), indent=1), encoding="utf-8")
        report(f"{name}: {time.perf_counter() - start:.1f} s")


def keep(run: Path) -> Kept:
    """What must not change of a finished run directory: evaluations, totals, hashes of model and checkpoint."""
    lines = (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    rows = {f"evaluation {i}": json.loads(line) for i, line in enumerate(lines)}
    kept: Kept = {
        "metrics.jsonl": dict(flatten(rows)),
        "summary.json": dict(flatten(json.loads((run / "summary.json").read_text(encoding="utf-8")))),
    }
    with safe_open(run / CHECKPOINT, framework="numpy") as file:
        state = json.loads(file.metadata()["state"])
    arrays = {f"tensor {name}": describe(array) for name, array in read_arrays(run / CHECKPOINT).items()}
    # The state has bytes and messages of every link and every exchange; the summary only some of them.
    kept[CHECKPOINT] = dict(flatten(state)) | arrays
    for path in sorted((run / "model").iterdir()):
        kept[f"model/{path.name}"] = {"sha256": hashlib.sha256(path.read_bytes()).hexdigest()}
    return kept


def flatten(value: object, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Numbers and words of nested tables and lists under dotted keys, without those that depend on the machine.

    >>> dict(flatten({"final": {"auc": 0.5}, "edges": [[0, 1]], "wall_seconds": 3.2}))
    {'final.auc': 0.5, 'edges.0.0': 0, 'edges.0.1': 1}
    """
    if not isinstance(value, Mapping | list):
        yield prefix, value
        return
    entries = value.items() if isinstance(value, Mapping) else enumerate(value)
    for key, item in entries:
        if key not in OF_THE_MACHINE:
            yield from flatten(item, f"{prefix}.{key}" if prefix else str(key))


def read_arrays(path: Path) -> dict[str, npt.NDArray[np.generic]]:
    """All tensors of a safetensors file."""
    with safe_open(path, framework="numpy") as file:
        return {name: file.get_tensor(name) for name in sorted(file.keys())}


def describe(array: npt.NDArray[np.generic]) -> str:
    """Type, shape and hash of a tensor.

    >>> describe(np.zeros((2, 3), dtype=np.float32))
    'float32 2x3 9d908ecfb6b256de'
    """
    shape = "x".join(map(str, array.shape)) or "one"
    return f"{array.dtype} {shape} {hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()[:16]}"


def compare(one: Path, other: Path) -> dict[str, str | None]:
    """For each config of either folder the first difference in words, None where there is none."""
    names = [name for name in CONFIGS if any((folder / name / KEPT).is_file() for folder in (one, other))]
    if not names:
        raise RunError(f"neither {one} nor {other} has results: write some first")
    return {name: difference(one / name, other / name) for name in names}


def difference(one: Path, other: Path) -> str | None:
    """Where two runs of one config differ first, and by how much; None if they are the same."""
    for run in (one, other):
        if not (run / KEPT).is_file():
            return f"{run / KEPT} is absent"
    a, b = (json.loads((run / KEPT).read_text(encoding="utf-8")) for run in (one, other))
    found = [
        (file, key, a.get(file, {}).get(key, ABSENT), b.get(file, {}).get(key, ABSENT))
        for file in {**a, **b}
        for key in {**a.get(file, {}), **b.get(file, {})}
    ]
    different = [(file, key, x, y) for file, key, x, y in found if x != y]
    if not different:
        return None
    file, key, x, y = different[0]
    more = f"; {len(different) - 1} more" if len(different) > 1 else ""
    return f"{file}: {key}: {x} and {y}{_how_much(one / file, other / file, key, x, y)}{more}"


def _how_much(one: Path, other: Path, key: str, x: object, y: object) -> str:
    if isinstance(x, int | float) and isinstance(y, int | float):
        relative = abs(y - x) / max(abs(x), abs(y))
        return f" (by {y - x:.3g}, relative {relative:.2g})"
    if ABSENT in (x, y) or not (key == "sha256" or key.startswith("tensor ")):
        return ""
    a, b = read_arrays(one), read_arrays(other)
    names = [key.removeprefix("tensor ")] if key.startswith("tensor ") else sorted({*a, *b})
    if any(name not in a or name not in b or a[name].shape != b[name].shape for name in names):
        return " (other shapes)"
    most = max(float(np.abs(a[name].astype(float) - b[name].astype(float)).max(initial=0)) for name in names)
    return f" (by {most:.3g} at most)" if math.isfinite(most) else " (not finite)"


def main(arguments: Sequence[str] | None = None) -> int:
    """Write or compare; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    writing = commands.add_parser("write", help="run the configs into a new folder")
    writing.add_argument("folder", type=Path)
    writing.add_argument("--only", help=f"some of them, comma-separated: {', '.join(CONFIGS)}")
    writing.add_argument("--workers", type=int, help="with run.workers")
    comparing = commands.add_parser("compare", help="compare two such folders")
    comparing.add_argument("folders", type=Path, nargs=2)
    given = parser.parse_args(arguments)
    try:
        if given.command == "write":
            os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")  # sums in one order only
            write(given.folder, _names(given.only), workers=given.workers)
            return 0
        differences = compare(*given.folders)
    except CrosshatchError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    for name, found in differences.items():
        print(f"{name}: {'same' if found is None else found}")
    same = sum(found is None for found in differences.values())
    print(f"{same} of {len(differences)} are the same")
    return 0 if same == len(differences) else 1


def _names(only: str | None) -> list[str]:
    names = list(CONFIGS) if only is None else only.split(",")
    for name in names:
        if name not in CONFIGS:
            raise RunError(f"--only {name}: there is no such config, choose from {', '.join(CONFIGS)}")
    return names


if __name__ == "__main__":
    sys.exit(main())
