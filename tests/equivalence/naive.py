"""The papers' algorithms as a student would write them: a loop a line, autograd, a copy of the modules a client.

Nothing here is taken from the package but the values that describe a case.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn import functional

from crosshatch.task.fusion import Head
from crosshatch.task.losses import Logistic, Squared
from crosshatch.task.task import Task
from crosshatch.trees import flatten
from tests.equivalence.federations import Case

Ids = npt.NDArray[np.int64]


@dataclass
class Model:
    """All silos' modules; the head (if any) is trained by silo `holder`."""

    blocks: list[nn.Module]
    head: nn.Module | None
    holder: int | None

    @classmethod
    def of(cls, task: Task) -> Model:
        """A fresh copy of a task's modules."""
        if isinstance(task.fusion, Head):
            return cls([copy.deepcopy(b) for b in task.blocks], copy.deepcopy(task.fusion.module), task.fusion.holder)
        return cls([copy.deepcopy(b) for b in task.blocks], None, None)

    def copy_for(self, silo: int) -> Model:
        """A copy of what the silo trains; the rest stays common."""
        head = copy.deepcopy(self.head) if silo == self.holder else self.head
        return Model([copy.deepcopy(b) if i == silo else b for i, b in enumerate(self.blocks)], head, self.holder)

    def flat(self) -> list[Tensor]:
        """One vector a silo: its block, and behind it the head at its holder."""
        vectors = [flatten(block) for block in self.blocks]
        if self.head is not None and self.holder is not None:
            vectors[self.holder] = torch.cat([vectors[self.holder], flatten(self.head)])
        return vectors

    def trained_by(self, silo: int) -> list[nn.Parameter]:
        """What a silo trains."""
        mine = list(self.blocks[silo].parameters())
        return mine + (list(self.head.parameters()) if self.head is not None and silo == self.holder else [])

    def embed(self, case: Case, ids: Ids) -> list[Tensor]:
        """Every silo's embeddings of some samples, as numbers."""
        with torch.no_grad():
            return [block(silo.train[ids]) for block, silo in zip(self.blocks, case.data.silos, strict=True)]

    def scores(self, embeddings: Sequence[Tensor]) -> Tensor:
        """Scores of the samples whose embeddings are given silo by silo."""
        if self.head is None:
            return torch.stack(list(embeddings)).sum(0)
        out: Tensor = self.head(torch.cat(list(embeddings), dim=1))
        return out


def mean_loss(case: Case, scores: Tensor, y: Tensor) -> Tensor:
    """The mean loss by torch's own functions."""
    if isinstance(case.task.loss, Squared):
        return 0.5 * functional.mse_loss(scores[:, 0], y)
    if isinstance(case.task.loss, Logistic):
        return functional.binary_cross_entropy_with_logits(scores[:, 0], y)
    return functional.cross_entropy(scores, y)


def gradient_step(case: Case, model: Model, trained: list[nn.Parameter], objective: Tensor, rate: float) -> None:
    """Gradient of the objective plus l2 / 2 |theta|^2 of the blocks, then the proximal operator of their l1 norm."""
    regulariser = case.task.regulariser
    named = [pair for block in model.blocks for pair in block.named_parameters()]
    blocks = {p for name, p in named if regulariser.penalise_bias or "bias" not in name}
    objective = objective + 0.5 * regulariser.l2 * sum((p * p).sum() for p in trained if p in blocks)
    gradients = torch.autograd.grad(objective, trained)
    with torch.no_grad():
        for parameter, gradient in zip(trained, gradients, strict=True):
            moved = parameter - rate * gradient
            if parameter in blocks:
                moved = moved.sign() * (moved.abs() - rate * regulariser.l1).clamp(min=0)
            parameter.copy_(moved)


def local_objective(
    case: Case, mine: Model, silo: int, ids: Ids, frozen: Callable[[int], Tensor], stale: Model
) -> Tensor:
    """Loss of some samples with the silo's fresh block, the others' frozen embeddings, and the head it knows."""
    own = mine.blocks[silo](case.data.silos[silo].train[ids])
    pieces = [own if i == silo else frozen(i) for i in range(len(mine.blocks))]
    knows = mine if silo == mine.holder else stale
    return mean_loss(case, knows.scores(pieces), case.data.y_train[ids])


def derivatives(case: Case, model: Model, silo: int, ids: Ids) -> Tensor:
    """What the label's holder sends a silo: each sample's derivative of its own loss by the silo's embedding."""
    embeddings = model.embed(case, ids)
    embeddings[silo].requires_grad_()
    loss = mean_loss(case, model.scores(embeddings), case.data.y_train[ids]) * len(ids)
    return torch.autograd.grad(loss, embeddings[silo])[0]


def fedbcd(
    case: Case, rounds: int, *, sequential: bool = False, mu: float = 0.0, label_holder: int | None = None
) -> list[Tensor]:
    """FedBCD, Algorithms 2 and 3 and equation (15); form (2) where `label_holder` is given."""
    model = Model.of(case.task)
    for r in range(rounds):
        ids = case.ids(r, 0)
        start = copy.deepcopy(model)
        for k in range(len(model.blocks)):
            seen = copy.deepcopy(model) if sequential else start  # in turn: the newest of everybody
            anchor = [p.detach().clone() for p in seen.trained_by(k)]
            embeddings = seen.embed(case, ids)
            sent = derivatives(case, seen, k, ids) if label_holder not in (None, k) else None
            for _ in range(case.steps):
                if sent is None:
                    objective = local_objective(case, model, k, ids, lambda i, e=embeddings: e[i], seen)  # type: ignore[misc]
                else:
                    objective = (model.blocks[k](case.data.silos[k].train[ids]) * sent).sum() / len(ids)
                trained = model.trained_by(k)
                pull = sum(((p - a) ** 2).sum() for p, a in zip(trained, anchor, strict=True))
                gradient_step(case, model, trained, objective + 0.5 * mu * pull, case.step_size(r))
    return model.flat()


def tdcd(case: Case, rounds: int, *, fresh: bool = False, label_holder: int | None = None) -> list[Tensor]:
    """TDCD, Algorithm 1 of both papers; `label_holder`: the others keep the derivatives of the round's start."""
    hubs = Model.of(case.task)
    for r in range(rounds):
        parts = [case.ids(r, q if fresh else 0) for q in range(case.steps)]
        after = copy.deepcopy(hubs)
        for j, silo in enumerate(case.data.silos):
            clients = []
            for k in range(silo.clients):
                mine = hubs.copy_for(j)
                for zeta in parts:
                    ids = zeta[silo.owners[zeta] == k]
                    if len(ids):
                        objective = _client_objective(case, hubs, mine, j, ids, label_holder)
                        gradient_step(case, mine, mine.trained_by(j), objective, case.step_size(r))
                clients.append(mine.trained_by(j))
            with torch.no_grad():
                for target, *values in zip(after.trained_by(j), *clients, strict=True):
                    target.copy_(sum(values) / silo.clients)
        hubs = after
    return hubs.flat()


def _client_objective(case: Case, hubs: Model, mine: Model, j: int, ids: Ids, label_holder: int | None) -> Tensor:
    if label_holder in (None, j):
        embeddings = hubs.embed(case, ids)
        return local_objective(case, mine, j, ids, lambda i: embeddings[i], hubs)
    sent = derivatives(case, hubs, j, ids)
    own: Tensor = mine.blocks[j](case.data.silos[j].train[ids])
    return (own * sent).sum() / len(ids)


def joint(case: Case, rounds: int, *, fresh: bool = False) -> list[Tensor]:
    """Plain gradient descent on all blocks (and the head) together."""
    model = Model.of(case.task)
    trained = [p for j in range(len(model.blocks)) for p in model.trained_by(j)]
    for r in range(rounds):
        for q in range(case.steps):
            ids = case.ids(r, q if fresh else 0)
            own = [b(s.train[ids]) for b, s in zip(model.blocks, case.data.silos, strict=True)]
            objective = mean_loss(case, model.scores(own), case.data.y_train[ids])
            gradient_step(case, model, trained, objective, case.step_size(r))
    return model.flat()
