"""Runs of FedBCD on made-up tables, each with its own shapes and settings, and the same rounds as plain numpy loops."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from crosshatch.runs.config import read_config
from crosshatch.runs.train import train

Matrix = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Shape:
    """What a made-up run is like; `columns` has the number of each silo's features."""

    columns: tuple[int, ...] = (3, 4)
    samples: int = 60
    loss: str = "logistic"
    held: int | None = None
    steps: int = 3
    size: int | None = None
    l2: float = 0.0
    proximal: float = 0.0
    zero: bool = True
    bias: bool = True
    turns: bool = False
    rounds: int = 8
    step_size: float = 0.2
    seed: int = 0
    algorithm: str = "fedbcd"
    precision: str = "float64"


def random_shape(seed: int) -> Shape:
    """Anything that Theorem 1 is about."""
    draw = np.random.default_rng(seed)
    silos = int(draw.integers(2, 5))
    columns = tuple(int(n) for n in draw.integers(2, 9, size=silos))
    one_step = bool(draw.random() < 0.2)
    return Shape(
        columns=columns,
        samples=int(draw.integers(40, 120)),
        loss=str(draw.choice(["logistic", "squared"])),
        held=int(draw.integers(silos)) if seed % 2 else None,
        steps=1 if one_step else int(draw.integers(1, 8)),
        size=None if draw.random() < 0.5 else int(draw.integers(10, 25)),
        l2=float(draw.choice([0.0, 0.01, 0.3])),
        proximal=0.0 if one_step else float(draw.choice([0.0, 0.1, 1.0])),
        zero=bool(draw.random() < 0.5),
        bias=bool(draw.random() < 0.7),
        turns=False if one_step else bool(draw.random() < 0.3),
        rounds=int(draw.integers(5, 15)),
        step_size=float(draw.uniform(0.02, 0.3)),
        seed=seed,
        algorithm="fedsgd" if one_step else "fedbcd",
    )


def make_run(shape: Shape, folder: Path, **changes: Mapping[str, Any]) -> Path:
    """Train the made-up run, its messages recorded; `changes` are further settings by section."""
    draw = np.random.default_rng(1000 + shape.seed)
    x = draw.normal(size=(shape.samples, sum(shape.columns))) @ draw.normal(size=(sum(shape.columns),) * 2)
    signal = x @ draw.normal(size=x.shape[1])
    y = signal / signal.std() if shape.loss == "squared" else (signal > 0).astype(int)
    folder.mkdir(parents=True, exist_ok=True)
    names = [f"x{i}" for i in range(x.shape[1])]
    rows = [f"{i},{','.join(map(repr, row))},{label}" for i, (row, label) in enumerate(zip(x.tolist(), y, strict=True))]
    table = folder / "table.csv"
    table.write_text("\n".join([",".join(["id", *names, "label"]), *rows]) + "\n")
    ends = np.cumsum((0, *shape.columns))
    silos = [{"name": f"s{j}", "columns": names[a:b]} for j, (a, b) in enumerate(pairwise(ends))]
    fedbcd: dict[str, Any] = {"local_steps": shape.steps, "proximal": shape.proximal}
    fedbcd |= {"order": "sequential" if shape.turns else "parallel"}
    tables: dict[str, dict[str, Any]] = {
        "data": {
            "path": str(table), "id": "id", "label": "label",
            "target": "regression" if shape.loss == "squared" else "classes",
        },
        "federation": {"silos": silos, "labels": "shared" if shape.held is None else f"s{shape.held}"},
        "model": {"block": "linear", "l2": shape.l2, "zero_init": shape.zero, "bias": shape.bias, "loss": shape.loss},
        "algorithm": {"name": shape.algorithm, "step_size": shape.step_size},
        "run": {
            "rounds": shape.rounds, "seed": shape.seed, "threads": 1, "precision": shape.precision,
            "record_messages": True,
        },
    }  # fmt: skip
    tables["algorithm"] |= fedbcd if shape.algorithm == "fedbcd" else {}
    tables["algorithm"] |= {} if shape.size is None else {"batch_size": shape.size}
    for section, keys in changes.items():
        tables[section] = tables.get(section, {}) | dict(keys)
    config = folder / "config.toml"
    config.write_bytes(msgspec.toml.encode(tables))
    out = folder / "run"
    train(read_config(config), out=out)
    return out


Said = tuple[int, str, int, int, Matrix]
"""Round, exchange, its use in the round, sender and values."""


def naive(
    shape: Shape, xs: Sequence[Matrix], y: Matrix, start: Sequence[tuple[Matrix, float]], ids: Sequence[Any]
) -> list[Said]:
    """All messages of a run, `ids` having the samples of each round; weights are (d,) with a bias."""
    weights, biases = [w.copy() for w, _ in start], [b for _, b in start]
    said: list[Said] = []
    everybody = range(len(xs))

    def derivative(scores: Matrix, labels: Matrix) -> Matrix:
        return scores - labels if shape.loss == "squared" else 1 / (1 + np.exp(-scores)) - labels

    def walk(k: int, rows: Matrix, labels: Matrix, rest: Matrix, given: Matrix | None) -> None:
        w0, b0 = weights[k].copy(), biases[k]
        for _ in range(shape.steps):
            g = derivative(rows @ weights[k] + biases[k] + rest, labels) if given is None else given
            in_w = rows.T @ g / len(g) + shape.l2 * weights[k] + shape.proximal * (weights[k] - w0)
            in_b = g.mean() + shape.l2 * biases[k] + shape.proximal * (biases[k] - b0)
            weights[k] = weights[k] - shape.step_size * in_w
            biases[k] = biases[k] - shape.step_size * in_b * shape.bias

    for r, batch in enumerate(ids):
        rows, labels = [x[batch] for x in xs], y[batch]
        scores = [rows[k] @ weights[k] + biases[k] for k in everybody]
        changed = list(everybody)
        for turn in everybody if shape.turns else [None]:
            use = turn or 0
            asking = list(everybody) if turn is None else [turn]
            for j in changed if shape.held is not None else everybody:
                others = [i for i in asking if i != j] if shape.held is None else [shape.held] * (j != shape.held)
                if others:
                    said.append((r, "share", use, j, scores[j].copy()))
            total = np.sum(scores, axis=0)
            g = derivative(total, labels)
            if shape.held is not None and [i for i in asking if i != shape.held]:
                said.append((r, "derivatives", use, shape.held, g))
            for k in asking:
                given = None if shape.held in (None, k) else g
                walk(k, rows[k], labels, total - scores[k], given)
            if turn is not None:
                scores[turn] = rows[turn] @ weights[turn] + biases[turn]
                changed = [turn]
    return said
