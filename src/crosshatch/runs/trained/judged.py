"""What a finished run says of its test rows beyond single numbers: how sure these are, decisions, and the scores."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save
from torch import Tensor

from crosshatch.runs.best_round import BestRound
from crosshatch.runs.config import Config
from crosshatch.runs.files import write_whole, writing
from crosshatch.runs.summary import measure_clients
from crosshatch.seeds import generator
from crosshatch.simulator.simulator import Simulator
from crosshatch.task.losses import Loss, unweighted
from crosshatch.task.measuring.decisions import decide
from crosshatch.task.measuring.resampled import draw_in_turn, resampled
from crosshatch.task.own_metric import OwnMetric

SCORES = "scores.safetensors"
MOST_DRAWS, MOST_NUMBERS = 200, 4_000_000
Weights = tuple[Tensor, ...] | None
"""Of the model that is asked; None is the one of the last round."""


def judged(
    config: Config, simulator: Simulator, metrics: Sequence[str | OwnMetric], best: BestRound | None, path: Path
) -> dict[str, Any]:
    """What to add to the summary of the run in a directory, into which the scores are written where that is asked.

    All is of the model that predictions take: that of the best round on the validation rows if there is one.
    """
    weights = None if best is None or not best.weights else best.weights
    if config.evaluate.keep_scores:
        with writing(path):
            keep_scores(path, simulator, weights, seed=config.run.seed)
    return judge(simulator, metrics, weights) | measure_clients(config, simulator, metrics, best)


def judge(simulator: Simulator, metrics: Sequence[str | OwnMetric], weights: Weights) -> dict[str, Any]:
    """For the summary: what its test rows say of a model, and its validation rows where there are any."""
    data, validation = simulator.data, None
    if data.y_validation is not None:
        kept = simulator.scores([silo.rows("validation") for silo in data.silos], weights)
        validation = (kept, data.y_validation)
    test = simulator.scores([silo.test for silo in data.silos], weights), data.y_test
    return judge_scores(metrics, simulator.task.loss, test, validation)


def judge_scores(
    metrics: Sequence[str | OwnMetric],
    loss: Loss,
    test: tuple[Tensor, Tensor],
    validation: tuple[Tensor, Tensor] | None,
) -> dict[str, Any]:
    """How many test rows there are, the `noise` of each metric and, of two classes, `decisions`.

    The noise is the standard deviation of the metric over test rows drawn again, with replacement; draws of which it
    says nothing (rows of one class, targets that are all equal) are left out.
    """
    scores, y = test
    names, at_once = [one for one in metrics if isinstance(one, str)], min(MOST_DRAWS, MOST_NUMBERS // len(y))
    draws = max(50, at_once)
    if at_once < draws:  # to spare memory; an even number, for which products of matrices have the bits of all in one
        at_once = max(2, at_once // 2 * 2)
    each = draw_in_turn(len(y), draws, seed=0, at_once=at_once)
    drawn = [resampled(names, scores, y, loss, counts) for counts in each]
    values = {name: np.concatenate([one[name] for one in drawn]) for name in drawn[0]}
    finite = {name: many[np.isfinite(many)] for name, many in values.items()}
    noise = {name: float(np.std(many, ddof=1)) for name, many in finite.items() if len(many) > 1}
    said: dict[str, Any] = {"test_rows": len(y), "noise": noise}
    if unweighted(loss).target == "binary":
        found = decide(*_decided(loss, test), None if validation is None else _decided(loss, validation))
        said["decisions"] = asdict(found) | {"reliability": [asdict(one) for one in found.reliability]}
    return said


def keep_scores(path: Path, simulator: Simulator, weights: Weights, *, seed: int) -> None:
    """Write scores and labels of the validation and the test rows into a file of the run directory.

    `without.NAME` are scores of the test rows with the rows of one silo in another order, drawn with `seed`: what is
    then lost is what that silo contributes.
    """
    data = simulator.data
    test = [silo.test for silo in data.silos]
    kept = {"test.scores": simulator.scores(test, weights), "test.y": data.y_test}
    if data.y_validation is not None:
        rows = [silo.rows("validation") for silo in data.silos]
        kept |= {"validation.scores": simulator.scores(rows, weights), "validation.y": data.y_validation}
    order = torch.as_tensor(generator(seed, "permuted rows").permutation(len(data.y_test)))
    for k, silo in enumerate(data.silos):
        if len(data.silos) > 1:
            mixed = [rows[order.to(rows.device)] if j == k else rows for j, rows in enumerate(test)]
            kept[f"without.{silo.name}"] = simulator.scores(mixed, weights)
    write_whole(path / SCORES, save({name: one.detach().cpu().contiguous() for name, one in kept.items()}))


def _decided(loss: Loss, scored: tuple[Tensor, Tensor]) -> tuple[Any, Any]:
    scores, y = scored
    return loss.predict(scores.detach().double()).cpu().numpy(), y.long().cpu().numpy()
