"""Random local work, and the naive answer to it: one client after the other, modules and autograd."""

from __future__ import annotations

import copy

import numpy as np
import torch
from torch import Tensor, nn

from crosshatch.local.local_steps import LocalSteps
from crosshatch.local.problem import LossInputs, Part, Problem
from crosshatch.task.blocks.built_in import CNN, LSTM
from crosshatch.task.fusion import Head, Sum
from crosshatch.task.losses import CrossEntropy, Logistic, Loss, Squared
from crosshatch.task.optimisers import Momentum, Optimiser
from crosshatch.task.regulariser import Regulariser
from crosshatch.task.task import Task
from crosshatch.trees import flatten, load

FEATURES = 4
WIDTHS = {"sum": (2, 2), "held": (3, 2), "received": (3, 2)}


class Gated(nn.Module):
    """A module that is not a chain."""

    def __init__(self, outputs: int) -> None:
        super().__init__()
        self.gate, self.value = nn.Linear(FEATURES, outputs), nn.Linear(FEATURES, outputs)

    def forward(self, x: Tensor) -> Tensor:
        """A gate times a value."""
        out: Tensor = torch.sigmoid(self.gate(x)) * self.value(x)
        return out


def block(kind: str, outputs: int) -> nn.Module:
    """A block of a kind, in double precision."""
    modules: dict[str, nn.Module] = {
        "linear": nn.Linear(FEATURES, outputs),
        "no bias": nn.Linear(FEATURES, outputs, bias=False),
        "mlp": nn.Sequential(nn.Linear(FEATURES, 5), nn.Tanh(), nn.Linear(5, outputs)),
        "deep": nn.Sequential(
            nn.Linear(FEATURES, 5),
            nn.ReLU(),
            nn.Linear(5, 3, bias=False),
            nn.Sigmoid(),
            nn.Linear(3, outputs),
            nn.Tanh(),
        ),
        "gated": Gated(outputs),
        "lstm": LSTM((2, 2), outputs, hidden=3),
        "cnn": CNN((2, 5, 6), outputs, channels=3, dense=4),
    }
    return modules[kind].double()


def draw_problem(
    seed: int,
    *,
    kind: str = "mlp",
    fusion: str = "sum",
    loss: Loss | None = None,
    parts: int = 1,
    clients: int = 4,
    steps: int = 3,
    derivative: bool = False,
    distinct: bool = False,
    regulariser: Regulariser | None = None,
    proximal: float = 0.0,
    first: int = 0,
) -> Problem:
    """Ragged counts, some of them zero. `fusion`: "sum", or a head "held" or "received" by the silo at work."""
    torch.manual_seed(seed)
    draw = np.random.default_rng(seed)
    loss = Logistic() if loss is None else loss
    scores = loss.scores(3)
    widths = (scores, scores) if fusion == "sum" else (3, 2)
    silo = 1 if fusion == "received" else 0
    own = widths[silo]
    blocks = (block(kind, widths[0]), block(kind, widths[1]))
    head = nn.Sequential(nn.Linear(5, 4), nn.Tanh(), nn.Linear(4, scores)).double()
    task = Task(blocks, Sum() if fusion == "sum" else Head(head, 0), loss, regulariser or Regulariser())
    start = task.initial()[silo]
    if distinct:
        start = start + 0.1 * torch.randn(clients, start.shape[0], dtype=torch.float64)
    counts = [draw.integers(0, 6, size=clients) for _ in range(parts)]
    counts[0][draw.integers(clients)] += 1  # somebody has something
    made = []
    for count in counts:
        n = int(count.sum())
        x = torch.randn(n, *((2, 5, 6) if kind == "cnn" else (FEATURES,)), dtype=torch.float64)
        if derivative:
            known = LossInputs(derivative=torch.randn(n, own, dtype=torch.float64))
        else:
            y = torch.randint(3, (n,)) if isinstance(loss, CrossEntropy) else torch.randint(2, (n,)).double()
            known = LossInputs(y=y, rest=torch.randn(n, scores if fusion == "sum" else 5, dtype=torch.float64))
        made.append(Part(x, known, count))
    columns = (0, own) if silo == 0 else (widths[0], widths[0] + own)
    received = flatten(head) if fusion == "received" else None
    return Problem(
        task, silo, tuple(made), start, received, columns, LocalSteps(steps, 0.3, first=first, proximal=proximal)
    )


def naive_blocks(problem: Problem) -> Tensor:
    """Every client's block after its steps, (clients, p)."""
    task = problem.task
    module = copy.deepcopy(task.blocks[problem.silo])
    head = copy.deepcopy(task.fusion.module) if isinstance(task.fusion, Head) else None
    holds = task.holds_head(problem.silo)
    if head is not None and problem.head is not None:
        load(head, problem.head)
    modules = [module, head] if head is not None and holds else [module]
    trained = [p for one in modules for p in one.parameters() if p.requires_grad]
    results = []
    for client, start in enumerate(problem.start.expand(problem.clients, -1)):
        size = flatten(module).shape[0]
        load(module, start[:size])
        if head is not None and holds:
            load(head, start[size:])
        anchors = [p.detach().clone() for p in trained]
        optimiser = torch_optimiser(problem.task.optimiser, trained, problem.local.step_size)
        for step in range(problem.local.steps):
            part = problem.parts[(problem.local.first + step) % len(problem.parts)]
            low = int(part.counts[:client].sum())
            rows = slice(low, low + int(part.counts[client]))
            if rows.stop > rows.start:
                for p in trained:
                    p.grad = None
                torch.autograd.backward(_mean_loss(problem, module, head, part, rows))
                _descend(problem, module, trained, anchors, optimiser)
        pieces = [flatten(module)] + ([flatten(head)] if head is not None and holds else [])
        results.append(torch.cat(pieces))
    return torch.stack(results)


def _mean_loss(problem: Problem, module: nn.Module, head: nn.Module | None, part: Part, rows: slice) -> Tensor:
    out: Tensor = module(part.x[rows])
    known = part.loss_inputs
    if known.derivative is not None:
        return (out * known.derivative[rows]).sum() / len(out)
    assert known.rest is not None
    assert known.y is not None
    rest, y = known.rest[rows], known.y[rows]
    if head is None:
        scores = out + rest
    else:
        low, high = problem.columns
        scores = head(torch.cat([rest[:, :low], out, rest[:, high:]], dim=1))
    if isinstance(problem.task.loss, Squared):
        return nn.functional.mse_loss(scores.squeeze(1), y) / 2
    if isinstance(problem.task.loss, CrossEntropy):
        return nn.functional.cross_entropy(scores, y)
    return nn.functional.binary_cross_entropy_with_logits(scores.squeeze(1), y)


def torch_optimiser(
    optimiser: Optimiser | None, trained: list[nn.Parameter], step_size: float
) -> torch.optim.Optimizer | None:
    """The library's own, with a state of zero."""
    if optimiser is None:
        return None
    if isinstance(optimiser, Momentum):
        return torch.optim.SGD(trained, step_size, optimiser.momentum, nesterov=optimiser.nesterov)
    return torch.optim.Adam(trained, step_size, optimiser.betas, optimiser.epsilon)


def _descend(
    problem: Problem,
    block: nn.Module,
    trained: list[nn.Parameter],
    anchors: list[Tensor],
    optimiser: torch.optim.Optimizer | None,
) -> None:
    """The pull is on all that is trained, the regulariser on the block alone."""
    eta, regulariser = problem.local.step_size, problem.task.regulariser
    blocks = set(block.parameters())
    with torch.no_grad():
        for p, anchor in zip(trained, anchors, strict=True):
            l2, l1 = (regulariser.l2, regulariser.l1) if p in blocks else (0.0, 0.0)
            gradient = torch.zeros_like(p) if p.grad is None else p.grad
            gradient = gradient + l2 * p + problem.local.proximal * (p - anchor)
            if optimiser is not None:
                p.grad = gradient
                continue
            moved = p - eta * gradient
            p.copy_(moved.sign() * (moved.abs() - eta * l1).clamp(min=0))
    if optimiser is not None:
        optimiser.step()
