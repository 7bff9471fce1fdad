"""The state of a simulation on a graph, which rounds change: tokens on their walks, or duals."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any, final

import torch
from torch import Tensor

from crosshatch.local.forward import aligned
from crosshatch.simulator.graph.simulated_duals import Duals
from crosshatch.simulator.graph.simulated_tokens import Tokens


@final
class GraphState:
    """Agents on a graph: what all of them have is carried from round to round."""

    summed = True

    def __init__(self, federation: Any) -> None:
        self.federation = federation
        self.values: Tokens | Duals = federation.begin()

    @property
    def seconds(self) -> float:
        """The time of the last token or agent."""
        return float(self.values.seconds.max())

    @property
    def strategies(self) -> dict[str, str]:
        """How visits are computed; of duals there is one way only."""
        return dict(self.federation.chosen)

    @property
    def weights(self) -> tuple[Tensor, ...]:
        """The average of the tokens' models, or the agents' blocks."""
        found: tuple[Tensor, ...] = self.federation.model(self.values)
        return found

    def run_round(self, r: int, text: Any) -> None:
        """One visit and one hop of all tokens, or one iteration."""
        self.values = text.run_round(self.federation, self.values, r)

    def align(self) -> None:
        """All tensors. Rounds write into them, so there is nothing to do after the first time."""
        tensors: dict[str, Any] = {
            name: aligned(value) for name, value in vars(self.values).items() if isinstance(value, Tensor)
        }
        self.values = replace(self.values, **tensors)

    def communications(self, messages: int) -> int:
        """Messages in units of one number per sample."""
        return messages * int(self.federation.links.shape[1])

    def snapshot(self) -> dict[str, Tensor]:
        """All fields as tensors of their own, because rounds change the values in place."""
        every = [field.name for field in fields(self.values)]
        return {name: torch.as_tensor(getattr(self.values, name)).clone() for name in every}

    def restore(self, tensors: dict[str, Tensor]) -> None:
        """Copies of what was stored, each of the kind and on the device the value has now."""
        found: dict[str, Any] = {}
        for field in fields(self.values):
            now, then = getattr(self.values, field.name), tensors[field.name]
            assert tuple(then.shape) == tuple(now.shape)
            found[field.name] = then.to(now).clone() if isinstance(now, Tensor) else then.numpy().copy()
        self.values = replace(self.values, **found)

    def broken(self) -> str | None:
        """What is no longer finite, in words."""
        found: str | None = self.federation.broken(self.values)
        return found

    def describe(self) -> dict[str, Any]:
        """The graph and what happened on it."""
        edges = sorted([min(edge), max(edge)] for edge in self.federation.graph.edges)
        return {"edges": edges, **self.federation.describe(self.values)}
