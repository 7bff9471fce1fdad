"""What to change after training diverged: advice that fits the case."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch

from crosshatch.codecs import AnyCodec, ErrorFeedback, Half, RandomK
from crosshatch.data.federated import FederatedData
from crosshatch.exchanges import Algorithm, declared, on_silos
from crosshatch.schedules import rate
from crosshatch.task.task import Task
from crosshatch.theory.central_loss import CentralLoss

CROWD = 3
"""So many silos that descend at the same time overshoot together, where each alone would not."""
_ROWS = 1024  # training samples on which a step of all silos is tried


def advise(algorithm: Algorithm, data: FederatedData, task: Task, *, round: int, codecs: Mapping[str, AnyCodec]) -> str:
    """What to change after training diverged in this round (from 1 on)."""
    return "; ".join([_advise(algorithm, data, task, round), *_suspects(codecs)])


def _advise(algorithm: Algorithm, data: FederatedData, task: Task, round: int) -> str:
    step, steps, silos = algorithm.step_size, algorithm.local_steps, len(data.silos)
    now = step if isinstance(step, str) else f"{rate(step, round - 1):g}"
    lower = f"lower algorithm.step_size (now {now})"
    l2 = task.regulariser.l2
    # beyond 2 over l2 its gradient alone throws the weights further out at every step
    if not isinstance(step, str) and l2 * rate(step, round - 1) > 2:
        return f"{lower} or model.l2 (now {l2:g})"
    known, both = declared(algorithm), f"{lower} or algorithm.local_steps"
    if task.transfer is not None:
        weight = f"model.alignment_weight (now {task.transfer.weight:g})"
        return f"{lower if steps == 1 else both}, or {weight}: a product has no lowest value, a distance has"
    if steps == 1 or known.central:
        return lower
    if not on_silos(algorithm) or silos == 1:
        return both
    if not isinstance(step, str) and _overshoots(data, task, rate(step, 0)):
        return f"{lower}: even without local steps the first step raises the training loss"
    held = data.label_silo is not None
    abcd = "" if held and task.head is not None else "use algorithm abcd, or "  # a head's derivatives cannot go on
    if held and not known.asks_each_step and not known.continues_derivatives:
        return (
            f"labels are held by '{data.label_silo}' and its derivatives stay frozen for {steps} local steps: "
            f"{abcd}take fewer local steps, or {lower}"
        )
    anticipated = known.anticipated(silos)
    # beyond half the silos anticipation asks for shorter steps, and diverges sooner (docs/algorithms/abcd-results.md)
    if anticipated is not None and 2 * anticipated >= silos:
        return f"{both}, or have trials find what lasts: algorithm.step_size = 'measure'"
    if silos < CROWD or known.takes_turns:
        return both
    alone = anticipated is None or anticipated == 1
    others = "the others stood still" if alone else f"all of them moved {anticipated:g} times as far as it alone"
    together = f"{silos} silos descend at the same time, each as if {others}"
    remedy = abcd if anticipated is None else "set algorithm.anticipation = '0.5 silos', or "
    return f"{together}: {remedy}{both}"


def _overshoots(data: FederatedData, task: Task, step_size: float) -> bool:
    """Whether one gradient step of all silos together, from the start, makes the training loss grow.

    No other algorithm, and no fewer local steps, could then make up for the step size.
    """
    central = CentralLoss(data, task)
    rows = np.unique(np.linspace(0, len(data.y_train) - 1, _ROWS, dtype=np.int64))
    start = central.start()
    with torch.random.fork_rng(devices=[]):  # blocks may draw random numbers: the same each time
        torch.manual_seed(0)
        before = central.value(start, rows)
        torch.manual_seed(0)
        step = step_size * central.gradient(start, rows)
        for where, trained in zip(central.slices, task.trained, strict=True):
            if trained is not None:
                mine = step[where].index_select(0, trained)
                step[where] = torch.zeros_like(step[where]).index_copy(0, trained, mine)
        torch.manual_seed(0)
        return not central.value(start - step, rows) <= before  # NaN too


def _suspects(codecs: Mapping[str, AnyCodec]) -> list[str]:
    """Codecs that lose part of what is sent for good, so that training may go where nobody sent it."""
    found = []
    for exchange, codec in codecs.items():
        if isinstance(codec, ErrorFeedback) or codec.lossless or all(isinstance(one, Half) for one in codec.stages):
            continue
        scaled = any(isinstance(one, RandomK) and one.unbiased for one in codec.stages)  # never with error feedback
        how = ", accumulate" if exchange == "average" else ""
        remedy = "leave out unbiased" if scaled else f"try 'ef({codec}{how})'"
        found.append(
            f"codecs.{exchange} = '{codec}' loses a part of every message and may be the cause as well: {remedy}, "
            "or leave it out"
        )
    return found
