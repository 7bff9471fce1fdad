"""A party's half of an evaluation in a federation of silos.

The exchanges are those of training, under keys of their own and without codecs: hubs tell their blocks, clients embed
their rows, and the label's holder (labels shared: the first silo) gets to know the others' embeddings. Its clients
score their rows; of training rows only sums of losses leave them, of rows held out scores and labels go to their hub.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import final

import numpy as np
import torch
from torch import Tensor

from crosshatch.parties.evaluation.text import EvaluatingFederation, Found, Scored, Verdict
from crosshatch.parties.holdings.agreed import Batch
from crosshatch.parties.holdings.values import Blocks
from crosshatch.parties.names_of_parties import client_name, hub_name, server_name
from crosshatch.parties.post import CLIENT_UP
from crosshatch.parties.roles.client_role import ClientRole
from crosshatch.parties.roles.hub_role import HubRole
from crosshatch.parties.roles.role import Role
from crosshatch.parties.roles.server_role import ServerRole
from crosshatch.protocol.message_contents import Call
from crosshatch.task.regulariser import Regulariser

MOST_ROWS = 65_536  # in one message
_SUMS = 4  # of losses, of losses with scores of zero, of what ties embeddings together, of rows


@final
@dataclass(kw_only=True)
class SiloEvaluation(EvaluatingFederation):
    """`role` is the party's own of the training rows, `held` that of the rows held out (None: it has no part in them).

    `looked_at` training rows of its group, the first ones, count in the objective.
    """

    role: Role
    held: Role | None
    looked_at: int
    validation: int
    holder: int
    regulariser: Regulariser

    @property
    def _is_holder(self) -> bool:
        return isinstance(self.role, HubRole) and self.role.group == 0 and self.role.silo == self.holder

    def begin_round(self, round: int) -> None:
        """The roles count together."""
        self.role.begin_round(round)
        if self.held is not None:
            self.held.begin_round(round)

    def model(self, values: Blocks) -> Blocks:
        """The groups' blocks become their average."""
        return self.role.average_groups(values, round=self.role.round)

    def tell(self, model: Blocks) -> Blocks:
        """To all clients with training rows, who are all that have any."""
        return self.role.broadcast(model, Batch(self.role.round, (np.arange(self.role.agreed.samples),)))

    def look(self, told: Blocks) -> Found | None:
        """Sums of all groups, penalties of all silos, scores and labels."""
        sums = torch.zeros(_SUMS, dtype=torch.float64)
        for batch in self._batches(self.role, self.looked_at):
            sums = sums + self._sum_losses(told, batch)
        sums, penalty, scored = self._sum_groups(sums), self._add_penalties(told), self.look_again(told)
        if scored is None:
            return None
        loss, zero, apart, rows = sums.tolist()
        return Found((loss + apart) / rows + penalty, zero / rows, scored)

    def look_again(self, told: Blocks) -> Scored | None:
        """Piece by piece, in the order of the rows."""
        if self.held is None:
            return None
        pieces = [self._score(self.held, told, batch) for batch in self._batches(self.held, self.held.agreed.samples)]
        found = [piece for piece in pieces if piece is not None]
        if not found:
            return None
        scores, y = (torch.cat(each) for each in zip(*found, strict=True))
        return Scored(scores, y, self.validation)

    def decide(self, verdict: Verdict) -> Verdict:
        """By the holder's hub of the first group."""
        return Verdict(self.role.decide(int(verdict), round=self.role.round, by=self.holder))

    def _batches(self, role: Role, rows: int) -> Iterator[Batch]:
        for low in range(0, rows, MOST_ROWS):
            yield Batch(role.round, (np.arange(low, min(low + MOST_ROWS, rows)),))

    def _known(self, role: Role, told: Blocks, batch: Batch) -> tuple[Tensor, Tensor, Tensor] | None:
        """At the holder's clients: scores (n, c), labels, and how far embeddings are apart where that counts (n,)."""
        frozen = role.exchange(role.embed(told, batch), batch, to=self.holder)
        if isinstance(role, ClientRole):
            role.client.begin_round()  # which lets go of the rows it has gathered
        if not isinstance(role, ClientRole) or role.silo != self.holder or not role.client.at_work(batch):
            return None
        assert told.mine is not None
        (known,) = frozen.known
        assert known.y is not None
        scores, apart = role.client.model.judged(told.mine, known, frozen.head)
        return scores, known.y, apart

    def _sum_losses(self, told: Blocks, batch: Batch) -> Tensor:
        """The holder's clients' sums, at their hub."""
        role, call = self.role, self.role.uses.call("losses", self.role.round)
        known = self._known(role, told, batch)
        sums = torch.zeros(_SUMS, dtype=torch.float64)
        if known is not None:
            assert isinstance(role, ClientRole)
            scores, y, apart = known
            loss = role.client.model.loss
            values = (loss.value(scores, y), loss.value(torch.zeros_like(scores), y), apart)
            sums = torch.stack([*(one.sum(dtype=torch.float64) for one in values), sums.new_tensor(float(len(y)))])
            self._up(role, call, sums)
        elif isinstance(role, HubRole) and role.silo == self.holder:
            for k in role.keeper.roster.at_work(batch):
                sums = sums + self.post.recv(client_name(role.group, role.silo, k), call)[0]
        return sums

    def _sum_groups(self, sums: Tensor) -> Tensor:
        """The other groups' sums come by way of the server."""
        role, call = self.role, self.role.uses.call("losses of groups", self.role.round)
        if role.groups == 1:
            return sums
        server = server_name(0, 0)
        if isinstance(role, ServerRole) and role.level == 0:
            first, *rest = [hub_name(one.number, self.holder) for one in role.below]
            total = torch.stack([self.post.recv(hub, call)[0] for hub in rest]).sum(0)
            self.post.send(first, "group-server down", call, total)
        elif isinstance(role, HubRole) and role.silo == self.holder:
            if role.group:
                self.post.send(server, "group-server up", call, sums)
            else:
                sums = sums + self.post.recv(server, call)[0]
        return sums

    def _add_penalties(self, told: Blocks) -> float:
        """Every hub's of its own block, added up at the holder."""
        role, call = self.role, self.role.uses.call("penalty", self.role.round)
        if not isinstance(role, HubRole) or role.group:
            return 0.0
        assert told.mine is not None
        vectors = role.keeper.vectors
        own = float(self.regulariser.penalty(told.mine[: vectors.block_size], vectors.free))
        if role.silo != self.holder:
            across = None if role.agreed.hubs_together else "hub-hub up"
            self.post.send(hub_name(0, self.holder), across, call, torch.tensor([own], dtype=torch.float64))
            return own
        others = [self.post.recv(hub_name(0, j), call)[0] for j in role.agreed.others(role.silo)]
        return own + sum(float(one) for one in others)

    def _score(self, role: Role, told: Blocks, batch: Batch) -> tuple[Tensor, Tensor] | None:
        """Scores and labels of the batch, in its order, at the holder's hub."""
        call = role.uses.call("scores", role.round)
        known = self._known(role, told, batch)
        if known is not None:
            self._up(role, call, *known[:2])
        if not self._is_holder:
            return None
        assert isinstance(role, HubRole)
        roster, found = role.keeper.roster, dict[int, tuple[Tensor, ...]]()
        for k in roster.at_work(batch):
            found[k] = self.post.recv(client_name(0, self.holder, k), call)
        order = torch.as_tensor(np.argsort(np.concatenate([roster.rows(k, batch) for k in found])))
        scores, y = (torch.cat(each)[order] for each in zip(*found.values(), strict=True))
        return scores, y

    def _up(self, role: Role, call: Call, *tensors: Tensor) -> None:
        assert role.silo is not None
        link = None if role.silo in role.agreed.one_party else CLIENT_UP
        self.post.send(hub_name(role.group, role.silo), link, call, *tensors)
