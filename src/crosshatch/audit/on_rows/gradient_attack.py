"""The attack on gradients: that of a single sample is its row, times one number per unit of the first layer.

For a first layer z = W x + b the gradient of one sample's loss is d x^T in W and d in b: a row of the first, divided by
the same row of the second, is x.
"""

import numpy as np
import torch

from crosshatch.audit.attack_findings import AttackFindings
from crosshatch.audit.audited_run import AuditedRun
from crosshatch.audit.recoveries import NEAR
from crosshatch.local.read_chain import as_chain
from crosshatch.simulator.simulator import Simulator

NAME = "gradient of one sample"
SAMPLES = 100  # that are tried


def attack_gradients(run: AuditedRun, trained: Simulator) -> tuple[AttackFindings, ...]:
    """One finding per silo: how well the row of a sample is recovered from its gradient at the trained weights."""
    return tuple(_attack(run, trained, j) for j in range(len(run.task.blocks)))


def _attack(run: AuditedRun, trained: Simulator, silo: int) -> AttackFindings:
    name, task = run.task.names[silo], trained.task
    if not trained.data.silos[silo].train.numel():
        return AttackFindings(NAME, name, why="it has no features")
    if task.transfer is not None:
        return AttackFindings(NAME, name, why="not tried: in a transfer task no block leaves its silo")
    chain = as_chain(task.blocks[silo])
    if chain is None:
        return AttackFindings(NAME, name, why="not tried: its block does not begin with a linear layer")
    if not chain[0].bias:
        return AttackFindings(NAME, name, why="not tried: its first layer has no bias, rows are told up to length")
    errors = []
    for i in range(min(SAMPLES, len(trained.data.y_train))):
        found = _row(trained, silo, i)
        true = trained.data.silos[silo].train[i].flatten()
        if found is not None:
            errors.append(float((found - true).norm() / true.norm().clamp(min=1e-12)))
    tried = min(SAMPLES, len(trained.data.y_train))
    silent = f"; {tried - len(errors)} have no gradient at all" if len(errors) < tried else ""
    figures = {"share recovered": sum(error <= NEAR for error in errors) / tried}
    if errors:
        figures["median error"] = float(np.median(errors))
    beside = {"share recovered, chance": 0.0}
    knows, lowers = "the gradient of one sample", "more samples per client, or averages over many clients"
    remark = f"{tried} samples{silent}; {_where(run, silo)}"
    return AttackFindings(NAME, name, figures, beside, knows, lowers, remark=remark)


def _row(trained: Simulator, silo: int, i: int) -> torch.Tensor | None:
    """Sample i's row (d,) from the gradient of its loss; None where that is zero."""
    task, data = trained.task, trained.data
    weights = list(trained.weights)
    weights[silo] = weights[silo].detach().requires_grad_()
    scores = task.scores(weights, [one.train[i : i + 1] for one in data.silos])
    loss = task.loss.value(scores, data.y_train[i : i + 1]).sum()
    (gradient,) = torch.autograd.grad(loss, weights[silo])
    block, _ = task.split(silo, gradient)
    in_weight, in_bias = list(task.layouts[silo].views(block).values())[:2]
    unit = int(in_bias.abs().argmax())
    return None if float(in_bias[unit]) == 0 else in_weight[unit] / in_bias[unit]


def _where(run: AuditedRun, silo: int) -> str:
    """Whether anybody gets to see such a gradient in this run."""
    below, mine = run.config.algorithm.topology.below, run.data.silos[silo]
    if not below or mine.clients == 1:
        return "in this run no block leaves the silo"
    fewest = int(np.bincount(mine.owners, minlength=mine.clients).min())
    return f"clients send their blocks to the hub, the fewest samples of a client are {fewest}"
