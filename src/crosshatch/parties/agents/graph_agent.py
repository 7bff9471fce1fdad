"""An agent of a graph: its columns of all samples, the labels, and its own block."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from crosshatch.codecs import AnyCodec
from crosshatch.data.federated import FederatedData
from crosshatch.local.modules import evaluating
from crosshatch.local.read_chain import as_chain
from crosshatch.parties.holdings.model import Model
from crosshatch.parties.line import Name
from crosshatch.parties.names_of_parties import agent_name
from crosshatch.protocol.agents import check_agents
from crosshatch.task.probe import ROWS
from crosshatch.task.task import Task


@dataclass(frozen=True)
class Agent:
    """What it computes by itself: x (n, ...) are its columns, y (n,) the labels."""

    number: int
    x: Tensor
    y: Tensor
    model: Model

    @property
    def is_linear(self) -> bool:
        chain = as_chain(self.model.block)
        return chain is not None and len(chain) == 1 and chain[0].activation == "none"

    @property
    def norm_squared(self) -> float:
        """The square of the largest singular value of what a linear block multiplies its parameters with."""
        width = self.embed(self.model.vectors.first).shape[1]
        rows = self.x.flatten(1)
        bias = len(self.model.vectors.first) > width * rows.shape[1]
        design = torch.cat([rows, torch.ones(len(rows), 1, dtype=rows.dtype)], dim=1) if bias else rows
        return float(torch.linalg.matrix_norm(design, 2)) ** 2

    @property
    def largest_step(self) -> float:
        """One over the smoothness of its summed loss; any step does where the features are all zero."""
        smoothness = self.model.loss.curvature * self.norm_squared
        return 1.0 / smoothness if smoothness else 1.0

    def embed(self, theta: Tensor) -> Tensor:
        """Outputs (n, e) of its block."""
        with torch.no_grad():
            return self.model.embed(theta, self.x)

    def outputs(self, theta: Tensor, x: Tensor) -> Tensor:
        """Those for other rows, in evaluation mode."""
        with torch.no_grad(), evaluating(self.model.block):
            return self.model.embed(theta, x)

    def slope(self, theta: Tensor, derivative: Tensor) -> Tensor:
        """The gradient (p,) from derivatives (n, e) in its outputs."""
        leaf = theta.clone().requires_grad_()
        return torch.autograd.grad((self.model.embed(leaf, self.x) * derivative).sum(), leaf)[0]

    def shrink(self, theta: Tensor, step: float) -> Tensor:
        """The proximal operator of the regulariser."""
        return self.model.regulariser.shrink(theta, step, self.model.vectors.free)

    def visit(self, theta: Tensor, scores: Tensor, steps: int, step: float) -> tuple[Tensor, Tensor]:
        """Proximal gradient steps on its block for a token with these scores; the token follows."""
        for _ in range(steps):
            derivative = self.model.loss.derivative(scores, self.y)
            after = self.shrink(theta - step * self.slope(theta, derivative), step)
            scores = scores + self.embed(after) - self.embed(theta)
            theta = after
        return theta, scores


def agents_of(
    data: FederatedData, task: Task, name: str, codecs: Mapping[str, AnyCodec], only: Collection[Name] | None
) -> tuple[Agent, ...]:
    """One agent per silo (or `only` these), with copies of its columns and of the labels."""
    check_agents(data, task, name, codecs)
    widths = task.check_fit([silo.train[:ROWS] for silo in data.silos], data.classes)
    return tuple(
        Agent(
            k, silo.train.clone(memory_format=torch.contiguous_format), data.y_train.clone(),
            Model.of(task, k, widths, knows=True),
        )
        for k, silo in enumerate(data.silos)
        if only is None or agent_name(k) in only
    )  # fmt: skip
