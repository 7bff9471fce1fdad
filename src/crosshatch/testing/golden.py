"""Run golden trajectories through the real algorithms: `python -m crosshatch.testing.golden DIR`.

A folder holds `cases.json` (blocks, cases with parameters and losses) and `tiny.npz` (data, owners, batches). Every
case is run in the asked precision; the largest relative difference of its losses is printed. The exit code is 1 if a
case is beyond the tolerance, 3 if none is but some could not be run (an unknown algorithm or parameter), 2 if the
folder cannot be read.
"""

import argparse
import json
import sys
import zipfile
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from crosshatch.algorithms.fedbcd import FedBCD
from crosshatch.algorithms.hsgd import HSGD
from crosshatch.algorithms.mtcd import MTCD, STCD
from crosshatch.algorithms.tdcd import TDCD
from crosshatch.data.federated import FederatedData, SiloData
from crosshatch.errors import CrosshatchError, DataError
from crosshatch.exchanges import Algorithm
from crosshatch.protocol.batches import GivenBatches
from crosshatch.schedules import Constant, Halving, InverseSqrt, Schedule
from crosshatch.simulator.simulator import Simulator
from crosshatch.task.fusion import Head, Sum
from crosshatch.task.losses import Logistic, Loss, Squared
from crosshatch.task.regulariser import Regulariser
from crosshatch.task.task import Task

Arrays = Mapping[str, npt.NDArray[Any]]
TOLERANCE = {torch.float64: 1e-6, torch.float32: 1e-4}
_PARAMETERS = {
    "fedbcd": {"Q", "lr", "rounds", "l2", "l1", "mode", "mu", "labels", "decay", "loss_fn", "batches"},
    "hsgd": {"P", "Q", "lr", "iterations", "groups", "embedding", "devices", "decay"},
    "mtcd": {"Q", "S", "lr", "l2", "l1", "loss_fn", "decay"},
    "stcd": {"Q", "lr", "l2", "l1", "loss_fn", "decay"},
    "tdcd": {"Q", "lr", "rounds", "l2", "l1", "labels", "decay", "loss_fn", "batches", "fresh"},
}


@dataclass(frozen=True)
class GoldenFolder:
    """A golden folder: the columns of each silo, the arrays and the cases."""

    blocks: list[list[int]]
    arrays: Arrays
    cases: list[dict[str, Any]]


def read(folder: Path) -> GoldenFolder:
    try:
        text = json.loads((folder / "cases.json").read_text())
        with np.load(folder / "tiny.npz", allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
        return GoldenFolder(text["blocks"], arrays, text["cases"])
    except FileNotFoundError as error:
        raise DataError(
            f"{folder}: {Path(error.filename).name} is absent: give a folder with cases.json, tiny.npz"
        ) from None
    except (json.JSONDecodeError, KeyError, ValueError, zipfile.BadZipFile) as error:
        raise DataError(f"{folder}: not a golden folder: {error}") from None


def run_case(folder: GoldenFolder, case: Mapping[str, Any], precision: torch.dtype) -> float | str:
    """The largest relative difference between the case's losses and ours, or why it cannot be run."""
    kind = str(case["name"]).split("_")[0]
    parameters = case["params"]
    if kind not in _PARAMETERS:
        return f"unknown algorithm '{kind}'"
    if unknown := sorted(set(parameters) - _PARAMETERS[kind]):
        return f"unknown parameter {', '.join(unknown)}"
    try:
        make = {"hsgd": _hsgd, "mtcd": _tokens, "stcd": _tokens}.get(kind, _on_silos)
        data, task, algorithm, given, listed = make(folder, parameters, kind)
        simulator = Simulator(data, task, algorithm, threads=1, precision=precision, **given)
        found = []
        for r in range(max(listed) + 1):
            if r:
                simulator.run_round()
            if r in listed:
                found.append(simulator.objective())
    except CrosshatchError as error:
        return str(error)
    except KeyError as error:
        return f"parameter or array {error} is missing"
    wanted = np.asarray(case["loss"])
    if len(found) != len(wanted):
        return f"{len(wanted)} losses listed, {len(found)} computed"
    return float(np.max(np.abs(found - wanted) / np.maximum(np.abs(wanted), 1e-300)))


Run = tuple[FederatedData, Task, Algorithm, dict[str, Any], Collection[int]]
"""What is simulated, with which draws, and after how many rounds its losses are listed."""


def _on_silos(folder: GoldenFolder, parameters: Mapping[str, Any], kind: str) -> Run:
    listed = parameters.get("fresh", parameters.get("batches"))
    source, size = None, None
    if listed is not None:
        ids = folder.arrays[listed].astype(np.int64)
        source = GivenBatches(ids if ids.ndim == 3 else ids[:, None, :])
        size = source.rounds.shape[-1]
    steps, schedule, order = int(parameters["Q"]), _schedule(parameters), parameters.get("mode", "parallel")
    algorithm: TDCD | FedBCD = FedBCD(steps, schedule, size, order=order, proximal=parameters.get("mu", 0.0))
    if kind == "tdcd":
        algorithm = TDCD(steps, schedule, size, batches="fresh" if "fresh" in parameters else "reused")
    data = _data(folder, kind, parameters)
    rounds = range(int(parameters["rounds"]) + 1)
    return data, _linear_task(folder, parameters, data), algorithm, {"batches": source}, rounds


def _tokens(folder: GoldenFolder, parameters: Mapping[str, Any], kind: str) -> Run:
    """The walks are given; losses after every visit, and after the average where a visit ends with one."""
    walks = folder.arrays["walks"].astype(np.int64)
    walks = walks[:1] if kind == "stcd" else walks
    steps, step_size = int(parameters["Q"]), _schedule(parameters)
    algorithm: STCD | MTCD = STCD(steps, step_size)
    if kind == "mtcd":
        algorithm = MTCD(len(walks), steps, step_size, hops_between_averages=int(parameters.get("S", 0)))
    data = _data(folder, kind, parameters)
    task = _linear_task(folder, parameters, data)
    return data, task, algorithm, {"walks": walks}, range(1, walks.shape[1] + 1)


def _linear_task(folder: GoldenFolder, parameters: Mapping[str, Any], data: FederatedData) -> Task:
    """Linear blocks that start at zero, their sum, and the case's loss and regulariser."""
    loss: Loss = Logistic() if parameters["loss_fn"] == "logistic" else Squared()
    regulariser = Regulariser(l2=parameters.get("l2", 0.0), l1=parameters.get("l1", 0.0))
    blocks = tuple(nn.Linear(len(columns), 1, bias=False) for columns in folder.blocks)
    for block in blocks:
        nn.init.zeros_(block.weight)
    return Task(blocks, Sum(), loss, regulariser, tuple(silo.name for silo in data.silos))


def _hsgd(folder: GoldenFolder, parameters: Mapping[str, Any], kind: str) -> Run:
    """Hospital columns come first, each sample is a device; losses after every P iterations and at the end."""
    assert kind == "hsgd"
    x, half = folder.arrays["X"], folder.arrays["X"].shape[1] // 2
    groups = np.repeat(np.arange(len(parameters["groups"])), parameters["groups"])
    hospital, devices = list(range(half)), list(range(half, x.shape[1]))
    silos = _silo("hospital", x, hospital, groups), _silo("devices", x, devices, np.arange(len(x)))
    y = torch.as_tensor(folder.arrays["y"], dtype=torch.float64)
    data = FederatedData(silos, y, y, "regression", 1, groups=groups)
    blocks = tuple(_linear(folder.arrays[name]) for name in ("W1", "W2"))
    task = Task(blocks, Head(_linear(folder.arrays["w0"][:, None]), 0), Squared(), silos=("hospital", "devices"))
    steps, every = int(parameters["Q"]), int(parameters["P"])
    source = None
    if "devices" in parameters:
        chosen = folder.arrays[parameters["devices"]].astype(np.int64)  # (interval, group, devices)
        first = np.concatenate([[0], np.cumsum(parameters["groups"])[:-1]])
        inside = chosen - first[None, :, None] if chosen[:, -1].min() >= first[-1] else chosen
        source = tuple(GivenBatches(inside[:, [g], :]) for g in range(len(first)))
    fraction = 1.0 if source is None else 0.5  # given devices are taken as they are
    algorithm = HSGD(every, steps, _schedule(parameters), fraction)
    rounds = int(parameters["iterations"]) // steps
    return data, task, algorithm, {"batches": source}, {*range(0, rounds + 1, every // steps), rounds}


def _linear(weight: npt.NDArray[np.float64]) -> nn.Linear:
    """A layer without bias that multiplies rows by `weight` (inputs, outputs)."""
    layer = nn.Linear(weight.shape[0], weight.shape[1], bias=False, dtype=torch.float64)
    with torch.no_grad():
        layer.weight.copy_(torch.as_tensor(weight.T))
    return layer


def _schedule(parameters: Mapping[str, Any]) -> Schedule:
    rate, decay = float(parameters["lr"]), parameters.get("decay")
    if decay is None:
        return Constant(rate)
    if decay == "sqrt":
        return InverseSqrt(rate)
    if isinstance(decay, Mapping) and "every" in decay:
        return Halving(rate, int(decay["every"]))
    raise DataError(f"unknown decay {decay!r}")


def _data(folder: GoldenFolder, kind: str, parameters: Mapping[str, Any]) -> FederatedData:
    x, owners = folder.arrays["X"], folder.arrays["owners"]
    labels = folder.arrays["y_binary" if parameters["loss_fn"] == "logistic" else "y"]
    silos = tuple(
        _silo(f"silo{j}", x, columns, owners[j] if kind == "tdcd" else np.zeros(len(x)))
        for j, columns in enumerate(folder.blocks)
    )
    held = parameters.get("labels") == "held"
    y = torch.as_tensor(labels, dtype=torch.float64)
    binary = parameters["loss_fn"] == "logistic"
    return FederatedData(
        silos, y, y, "binary" if binary else "regression", 2 if binary else 1,
        label_silo=silos[-1].name if held else None,
    )  # fmt: skip


def _silo(name: str, x: npt.NDArray[Any], columns: list[int], owners: npt.NDArray[Any]) -> SiloData:
    features = torch.as_tensor(x[:, columns], dtype=torch.float64)
    names = tuple(f"x{c}" for c in columns)
    return SiloData(name, features, features, names, owners.astype(np.int64), int(owners.max()) + 1)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m crosshatch.testing.golden", description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--precision", choices=["float32", "float64"], default="float64")
    parser.add_argument("--only", default="", help="run the cases whose name begins with this")
    given = parser.parse_args(arguments)
    precision = torch.float64 if given.precision == "float64" else torch.float32
    try:
        folder = read(given.folder)
    except DataError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    beyond = unknown = 0
    cases = [case for case in folder.cases if case["name"].startswith(given.only)]
    for case in cases:
        result = run_case(folder, case, precision)
        if isinstance(result, str):
            unknown += 1
            print(f"unknown {case['name']:<32} {result}")
        else:
            good = result <= TOLERANCE[precision]
            beyond += not good
            print(f"{'ok' if good else 'FAIL':<7} {case['name']:<32} {result:.2e}")
    print(f"{len(cases) - beyond - unknown} passed, {beyond} failed, {unknown} unknown")
    return 1 if beyond or not cases else 3 if unknown else 0


if __name__ == "__main__":
    sys.exit(main())
