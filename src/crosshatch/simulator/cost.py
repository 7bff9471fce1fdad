"""What a local step costs a client: floating-point operations by torch's own counter, and memory.

Memory is what the step has to hold at once: weights, their gradients, an optimiser's moments, the samples and every
tensor autograd saves for the backward pass, each storage once. It is counted, not measured, so equal runs report equal
numbers.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

from crosshatch.exchanges import Algorithm, declared
from crosshatch.local.anchors import Anchors
from crosshatch.local.forward import weigh
from crosshatch.local.problem import LossInputs
from crosshatch.protocol.class_means import find_anchors
from crosshatch.simulator.vertical.federation import SimulatedFederation
from crosshatch.task.optimisers import state_size
from crosshatch.task.task import Task


@dataclass(frozen=True)
class StepCost:
    """One local step of one client."""

    flops: int
    memory: int  # bytes


class _Operations(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Adds up floating-point operations by torch's own formulas.

    torch's `FlopCounterMode` does the same, and imports the whole of `torch._dynamo`, which takes seconds.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.total = 0

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False

    def __torch_dispatch__(
        self, func: Any, types: Sequence[type], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """One operation; those made of others are taken apart."""
        del types
        given = dict(kwargs or {})
        with self:
            parts = func.decompose(*args, **given)
        if parts is not NotImplemented:
            return parts
        out = func(*args, **given)
        formula = flop_registry.get(func._overloadpacket)
        self.total += 0 if formula is None else formula(*args, **given, out_val=out)
        return out


def step_cost(
    task: Task, silo: int, x: Tensor, y: Tensor, widths: tuple[int, ...], anchors: Anchors | None = None
) -> StepCost:
    """The cost of a gradient step on the rows x (n, ...) at a client of a silo, labels at hand.

    `anchors` are the samples of a class mean, at its holder in a transfer task.

    >>> from crosshatch.task.fusion import Sum
    >>> from crosshatch.task.losses import Squared
    >>> task = Task((torch.nn.Linear(10, 1, bias=False),), Sum(), Squared())
    >>> step_cost(task, 0, torch.ones(4, 10), torch.ones(4), (1,)).flops  # forward and weight gradient, 2 x 40 each
    160
    """
    weights = task.initial()[silo].requires_grad_()
    rest = x.new_zeros(len(x), task.fusion.others_width(widths, silo))
    if anchors is not None:
        rest = rest[:, : widths[silo]]  # u_B alone
    _, head = task.split(silo, weights)
    if head is None:  # as received, where there is one: used, not trained
        head = task.head_in(task.initial())

    def loss() -> Tensor:
        embed = partial(task.embed, silo, weights)
        if task.transfer is None:
            joined = task.fusion.join(embed(x), rest, task.fusion.columns(widths, silo))
            return task.loss.value(task.fusion.scores(joined, task.fusion.under(head)), y).mean()
        class_mean = None if anchors is None else anchors.class_mean(embed)
        sides = LossInputs(y=y, rest=rest).sides(task.transfer, embed(x), class_mean)
        return task.transfer.values(task.loss, sides).mean()

    # The counter sees through an LSTM only where it is computed by plain products; the warning is about another
    # vendor's processors, whatever the setting.
    with (
        warnings.catch_warnings(action="ignore", category=UserWarning),
        torch.backends.mkldnn.flags(enabled=False),
        _Operations() as operations,
    ):
        value, held = weigh(loss, weights, x, rest)
        torch.autograd.grad(value, weights)
    return StepCost(flops=operations.total, memory=held + weights.nbytes)


@dataclass(frozen=True)
class SiloCost:
    """What local steps cost in a silo, over the clients at work in a round.

    `step_flops` and `step_memory` are of one step of the client with the largest share of the batch, which has
    `samples` of them; `run_flops` of every step of every client. The forward pass before an exchange, averaging and
    codecs come on top.
    """

    samples: int
    step_flops: int
    step_memory: int  # bytes
    run_flops: int


def silo_costs(groups: Sequence[SimulatedFederation], algorithm: Algorithm, *, iterations: int) -> dict[str, SiloCost]:
    """The costs of so many local steps by silo; who is at work with how many samples is that of round 0."""
    size, fraction = declared(algorithm).batch_size, declared(algorithm).fraction
    batches = [
        group.draw_batch(size, round=0) if size is not None or fraction is None else group.select(fraction, round=0)
        for group in groups
    ]
    first, costs = groups[0], {}
    for j, name in enumerate(first.task.names):
        rows = np.concatenate([batch.held[j][0].counts for batch in batches])
        largest, in_all, at_work = int(rows.max(initial=0)), int(rows.sum()), int(np.count_nonzero(rows))
        anchors = find_anchors(first.data, first.task) if first.task.holds_head(j) else None
        x, y, widths = first.data.silos[j].train[:1], first.data.y_train[:1], first.accounts.contents.widths
        mean = None if anchors is None else anchors.for_round(first.on_the_way.channels.seed, 0)
        # A step costs something fixed, and for every row as much again: two small ones tell both. The few operations
        # of an optimiser are not counted.
        two, three = (
            step_cost(first.task, j, torch.cat([x] * n), torch.cat([y] * n), widths, mean) for n in (2, 3)
        )  # fmt: skip
        flops, memory = three.flops - two.flops, three.memory - two.memory  # of each row
        together = (two.flops - 2 * flops) * at_work + flops * in_all
        optimiser, weights = first.task.optimiser, first.task.initial()[j]
        states = 0 if optimiser is None else state_size(optimiser, len(weights)) * weights.element_size()
        held = two.memory + (largest - 2) * memory + states
        costs[name] = SiloCost(largest, two.flops + (largest - 2) * flops, held, together * iterations)
    return costs
