"""The scores that runs have kept, as the study's own: one set per method and seed, all of the same rows."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import Tensor

from crosshatch.errors import RunError
from crosshatch.runs.trained.judged import SCORES


@dataclass(frozen=True)
class Kept:
    """Scores (n, c) of test and validation rows with their labels; `without` has those with a silo's rows shuffled."""

    scores: Tensor
    y: Tensor
    validation_scores: Tensor
    validation_y: Tensor
    without: Mapping[str, Tensor] = field(default_factory=dict)


def read_kept(run: Path) -> Kept:
    """What a run directory has."""
    path = run / SCORES
    if not path.is_file():
        raise RunError(f"{path} is missing: it was removed after the run ended; start the study again in another --out")
    found = load_file(path)
    before = "without."
    return Kept(
        found["test.scores"], found["test.y"], found["validation.scores"], found["validation.y"],
        {name.removeprefix(before): one for name, one in found.items() if name.startswith(before)},
    )  # fmt: skip


def read_yardstick(path: Path, y: Tensor, validation_y: Tensor | None) -> Kept:
    """What boosted trees have written, with the labels of the rows."""
    assert validation_y is not None
    found = load_file(path)
    return Kept(found["test"], y, found["validation"], validation_y)


def scores_csv(kept: Mapping[str, Sequence[Kept]], seeds: Sequence[int]) -> str:
    """One line per validation and test row: its label, and its scores by every method and seed, in full."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    first = next(iter(kept.values()))[0]
    width = first.scores.shape[1]
    names = [
        f"{name}, seed {seed}" + (f", score {c}" if width > 1 else "")
        for name, each in kept.items()
        for seed, _ in zip(seeds, each, strict=False)
        for c in range(width)
    ]
    writer.writerow(["part", "row", "label", *names])
    for part in ("validation", "test"):
        labels = first.y if part == "test" else first.validation_y
        table = torch.cat(
            [one.scores if part == "test" else one.validation_scores for each in kept.values() for one in each], dim=1
        ).double()
        for row, (label, scores) in enumerate(zip(labels.tolist(), table.tolist(), strict=True)):
            writer.writerow([part, row, label, *scores])
    return text.getvalue()
