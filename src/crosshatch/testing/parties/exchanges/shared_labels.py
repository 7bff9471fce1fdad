"""Labels shared: embeddings go from client to hub to the other hubs, and on to their clients."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from crosshatch.protocol.message_contents import Call
from crosshatch.protocol.names import head_channel, share_channel
from crosshatch.protocol.what_is_known import check_seen
from crosshatch.testing.parties.agreed import Batch
from crosshatch.testing.parties.exchanges.legs import Parties
from crosshatch.testing.parties.values_by_party import Embeddings, Frozen, know, with_own


@dataclass(frozen=True)
class SharedLabels:
    """One use of the exchange among all silos, to everybody or to silo `to` alone."""

    fed: Parties
    batch: Batch
    to: int | None
    call: Call

    def tell(
        self,
        embeddings: Embeddings,
        sent: Embeddings,
        before: Frozen,
        senders: Sequence[int],
        receivers: Sequence[int],
    ) -> Frozen:
        """What everybody knows when the senders have told the receivers of the embeddings `sent`."""
        batch, to, call, agreed = self.batch, self.to, self.call, self.fed.agreed
        arrived: dict[int, dict[int, Tensor]] = {i: {} for i in receivers}  # at each receiving hub, by sender
        heads: dict[int, Tensor] = {}
        for j in senders if len(agreed.silos) > 1 else ():
            name, width, rows_of = share_channel(j, to), agreed.widths[j], self.fed.rows_of(sent, j, batch)
            contents = [self.fed.collect("share", name, j, rows_of, width, batch, None, call)]
            if j == agreed.head_holder:
                assert sent.head is not None
                contents.append(self.fed.hubs[j].give_head(sent.head, head_channel(to), call))
            for i in receivers:
                if i != j:
                    rows, *head = self.fed.post.carry(self.fed.between_hubs("across"), call, *contents)
                    arrived[i][j] = self.fed.hubs[i].read("share", name, j, rows, width, batch, None, call)
                    if head:
                        heads[i] = head[0]
        after = before
        for i in receivers:
            seen = {**after.seen.get(i, {}), **arrived[i]}
            made = {**after.made.get(i, {}), **{j: sent.made[j] for j in arrived[i]}}
            after = replace(after, seen={**after.seen, i: seen}, made={**after.made, i: made})
            after = self._answer(i, arrived[i], heads.get(i), after)
        told = {who: after.known[who] for who in after.known if who[0] in receivers}
        return replace(after, known={**after.known, **with_own(told, embeddings, after.heads)})

    def _answer(self, silo: int, arrived: Mapping[int, Tensor], head: Tensor | None, frozen: Frozen) -> Frozen:
        """A hub sends its clients what is new of the other silos for their samples, and the head."""
        batch, name, call, agreed = self.batch, head_channel(self.to), self.call, self.fed.agreed
        hub, others = self.fed.hubs[silo], agreed.others(silo)
        check_seen(frozen.seen[silo], others)
        columns = hub.put_together(arrived, frozen.seen[silo], batch)
        clients = agreed.at_work(silo, batch)
        heads = {} if head is None else hub.pass_head(head, name, clients, call)
        known, got, told = dict(frozen.known), dict(frozen.heads), dict(frozen.others)
        for k in clients:
            me, client, along = (silo, k), self.fed.clients[silo][k], [heads[k]] if k in heads else []
            if arrived or not others:
                rows = torch.cat(list(columns.values()), dim=1)[agreed.rows(silo, k, batch)]
                link = self.fed.link(silo, "down") if arrived else None
                mine, *head_here = self.fed.post.carry(link, call, rows, *along)
                pieces = torch.split(mine, [one.shape[1] for one in columns.values()], dim=1)
                told[me] = {**told.get(me, {}), **dict(zip(columns, pieces, strict=True))}
                if head_here:
                    got[me] = client.take_head(head_here[0], name, call)
            known[me] = know(client, batch, told[me])
        return replace(frozen, known=known, heads=got, others=told)
