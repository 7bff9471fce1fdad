"""An agent's half of an evaluation: outputs are added up along a tree of the graph, towards the first agent.

On a graph everybody has the training labels; those of the rows held out are with the first agent alone.
"""

from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from crosshatch.parties.agents.dual_role import Dual
from crosshatch.parties.agents.graph_agent import Agent
from crosshatch.parties.agents.token_roles import SERVER, Tokens
from crosshatch.parties.evaluation.text import EvaluatingFederation, Found, Scored, Verdict
from crosshatch.parties.names_of_parties import agent_name
from crosshatch.protocol.message_contents import Call

MOST_ROWS = 65_536  # in one message


@final
@dataclass(kw_only=True)
class AgentEvaluation(EvaluatingFederation):
    """One agent's; `above` is who is nearer to the first agent, `below` those that are farther, by number.

    `held` (n, ...) are its columns of the rows held out, the first `validation` of them validation rows, `labels` (n,)
    theirs, at the first agent. The server of tokens is told the decision by that one, where there is one (`serves`).
    """

    agent: Agent
    held: Tensor
    validation: int
    labels: Tensor | None
    looked_at: int
    above: int | None
    below: tuple[int, ...]
    serves: bool = False

    def model(self, values: Tokens | Dual) -> Tensor:
        """Its block, or the average of its copies."""
        return values.weights if isinstance(values, Dual) else torch.stack(values.copies).mean(0)

    def look(self, told: Tensor) -> Found | None:
        """The sum of the losses and of all penalties, and the rows held out."""
        call = self.uses.call("penalty", self.round)
        model = self.agent.model
        own = float(model.regulariser.penalty(told, model.vectors.free))
        penalty = self._add_up(call, torch.tensor([own], dtype=torch.float64))
        scores, scored = self._scores(told, self.agent.x[: self.looked_at]), self.look_again(told)
        if scored is None or penalty is None or scores is None:
            return None
        loss, y = self.agent.model.loss, self.agent.y[: self.looked_at]
        values = (loss.value(one, y).mean(dtype=torch.float64) for one in (scores, torch.zeros_like(scores)))
        found, zero = (len(self.agent.y) * float(one) for one in values)
        return Found(found + float(penalty), zero, scored)

    def look_again(self, told: Tensor) -> Scored | None:
        scores = self._scores(told, self.held)
        if scores is None:
            return None
        assert self.labels is not None
        return Scored(scores, self.labels, self.validation)

    def decide(self, verdict: Verdict) -> Verdict:
        """Down the tree, and to the server."""
        call = self.uses.call("decide", self.round)
        said = torch.tensor([int(verdict)])
        if self.above is not None:
            (said,) = self.post.recv(agent_name(self.above), call)
        for k in self.below:
            self.post.send(agent_name(k), "agent-agent across", call, said)
        if self.above is None and self.serves:
            self.post.send(SERVER, "agent-server up", call, said)
        return Verdict(int(said))

    def _scores(self, told: Tensor, x: Tensor) -> Tensor | None:
        """Outputs of all agents, added up, at the first."""
        pieces = []
        for low in range(0, len(x), MOST_ROWS):
            own = self.agent.outputs(told, x[low : low + MOST_ROWS])
            pieces.append(self._add_up(self.uses.call("scores", self.round), own))
        found = [piece for piece in pieces if piece is not None]
        return torch.cat(found) if found else None

    def _add_up(self, call: Call, own: Tensor) -> Tensor | None:
        for k in self.below:
            own = own + self.post.recv(agent_name(k), call)[0]
        if self.above is None:
            return own
        self.post.send(agent_name(self.above), "agent-agent across", call, own)
        return None


@final
@dataclass(kw_only=True)
class TokenServerEvaluation(EvaluatingFederation):
    """The server of tokens hears what was decided, and no more."""

    def decide(self, verdict: Verdict) -> Verdict:  # noqa: ARG002
        (said,) = self.post.recv(agent_name(0), self.uses.call("decide", self.round))
        return Verdict(int(said))
