"""Labels held by one silo: embeddings go to its clients, the loss's derivatives come back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from crosshatch.protocol.message_contents import About, Call
from crosshatch.protocol.names import derivative_channels, share_channel
from crosshatch.protocol.what_is_known import check_seen
from crosshatch.testing.parties.agreed import Batch
from crosshatch.testing.parties.client import Client
from crosshatch.testing.parties.exchanges.legs import Parties
from crosshatch.testing.parties.model import KnownOfOthers
from crosshatch.testing.parties.values_by_party import Embeddings, Frozen, Who, know


@dataclass
class HeldLabels:
    """One use of the exchange with the label's holder, after which the holder's silo knows `seen`, `made` and `others`.

    `around` are the embeddings the others' are taken from, `about` says which parts of the batch travel. Within a round
    (`about.asked` is a part) the holder's hub adds to each silo's new embeddings what it remembers of the others.
    """

    fed: Parties
    batch: Batch
    around: Embeddings
    before: Frozen
    about: About
    up: Call
    down: Call

    def __post_init__(self) -> None:
        """Begin with what was known before."""
        assert self.fed.agreed.label_holder is not None
        self.holder = self.fed.agreed.label_holder
        self.seen, self.made = dict(self.before.seen.get(self.holder, {})), dict(self.before.made.get(self.holder, {}))
        self.others = dict(self.before.others)

    @property
    def _later(self) -> bool:
        return self.about.asked is not None

    def ask(self, embeddings: Embeddings, senders: Sequence[int]) -> dict[Who, dict[int | None, Tensor]]:
        """Embeddings of these silos go to the holder's hub and on to its clients; what each got in this step alone."""
        fed, batch, part, holder = self.fed, self.batch, self.about.asked, self.holder
        new: dict[int, Tensor] = {}
        for j in senders:
            name, width = share_channel(j), fed.agreed.widths[j]
            rows = fed.rows_of(embeddings, j, batch, part)
            gathered = fed.collect("share", name, j, rows, width, batch, part, self.up)
            (arrived,) = fed.post.carry(fed.between_hubs("up"), self.up, gathered)
            new[j] = fed.hubs[holder].read("share", name, j, arrived, width, batch, part, self.up)
        if not self._later:
            self.seen |= new
            self.made |= {j: embeddings.made[j] for j in new}
        check_seen(self.seen, fed.agreed.others(holder))
        if not senders:
            return {}
        columns = self._columns(new)
        heard: dict[Who, dict[int | None, Tensor]] = {}
        for client in fed.at_work(batch, [holder], part):
            me = (holder, client.number)
            beside = torch.cat(list(columns.values()), dim=1)
            place = fed.agreed.rows(holder, client.number, batch, part)
            (mine,) = fed.post.carry(fed.link(holder, "down"), self.up, beside[place])
            pieces = torch.split(mine, [one.shape[1] for one in columns.values()], dim=1)
            told = dict(zip(columns, pieces, strict=True))
            if self._later:
                heard[me] = told
            else:
                self.others[me] = {**self.others.get(me, {}), **told}
        return heard

    def _columns(self, new: Mapping[int, Tensor]) -> dict[int | None, Tensor]:
        """What the holder's hub tells its clients: by silo, or one sum under None."""
        seen = self.seen
        if self.fed.agreed.head_holder is not None:
            return dict(new.items())
        if not self._later:
            return {None: torch.stack(list(seen.values())).sum(0)}
        start, end = self._place_of(self.about.asked)
        return {j: own + _sum([seen[i][start:end] for i in seen if i != j], own) for j, own in new.items()}

    def _place_of(self, part: int | None) -> tuple[int, int]:
        """Where a part's rows stand among those of all parts."""
        if part is None:
            return 0, len(self.batch.ids())
        before = sum(len(ids) for ids in self.batch.parts[:part])
        return before, before + len(self.batch.parts[part])

    def answer(
        self, receivers: Sequence[int], heard: Mapping[Who, Mapping[int | None, Tensor]]
    ) -> dict[Who, tuple[KnownOfOthers, ...]]:
        """Derivatives go from the holder's clients by way of the hubs to the clients of the other receivers."""
        fed, batch, holder, part = self.fed, self.batch, self.holder, self.about.answered
        asking = [j for j in receivers if j != holder]
        channels = derivative_channels(asking, each=self.about.each or len(receivers) == 1) if asking else {}
        given: dict[str, dict[int, Tensor]] = {name: {} for name in channels}
        for client in fed.at_work(batch, [holder], part) if asking else ():
            contents = []
            for name, silos in channels.items():
                rows = self._derivative(client, silos[0], heard.get((holder, client.number), {}))
                contents.append(client.give_rows("derivatives", name, rows, batch, part, self._drawn))
            arrived = fed.post.carry(fed.link(holder, "up"), self.down, *contents)
            for name, content in zip(channels, arrived, strict=True):
                given[name][client.number] = content
        known: dict[Who, tuple[KnownOfOthers, ...]] = {}
        for name, silos in channels.items():
            for j in silos:
                known |= self._pass_on(name, j, given[name])
        for client in fed.at_work(batch, [holder]):  # it is always told
            known[holder, client.number] = know(client, batch, self.others[holder, client.number])
        return known

    @property
    def _drawn(self) -> Call:
        """Names a codec's draws: both ways are counted by how often the way up was used."""
        return Call("derivatives", self.down.round, self.up.use)

    def _pass_on(self, name: str, silo: int, given: Mapping[int, Tensor]) -> dict[Who, tuple[KnownOfOthers, ...]]:
        fed, batch, holder, part = self.fed, self.batch, self.holder, self.about.answered
        width = (1 if fed.hubs[silo].model.transfer is None else 2) * fed.agreed.widths[silo]
        gathered = fed.hubs[holder].gather("derivatives", given, batch, part, width)
        (content,) = fed.post.carry(fed.between_hubs("down"), self.down, gathered)
        every = fed.hubs[silo].read("derivatives", name, holder, content, width, batch, part, self._drawn)
        known: dict[Who, tuple[KnownOfOthers, ...]] = {
            (silo, client.number): (KnownOfOthers(),) * len(batch.parts) for client in fed.at_work(batch, [silo])
        }
        for client in fed.at_work(batch, [silo], part):
            rows = every[fed.agreed.rows(silo, client.number, batch, part)]
            (mine,) = fed.post.carry(fed.link(silo, "down"), self.down, rows)
            if part is None:
                pieces = torch.split(mine, client.counts(batch))
                known[silo, client.number] = tuple(self._known(silo, piece) for piece in pieces)
            else:
                only = list(known[silo, client.number])
                only[part] = KnownOfOthers(derivative=mine)
                known[silo, client.number] = tuple(only)
        return known

    def _known(self, silo: int, rows: Tensor) -> KnownOfOthers:
        """Derivatives, or what stands in their place in a transfer task."""
        transferred = self.fed.hubs[silo].model.transfer is not None
        return KnownOfOthers(rest=rows) if transferred else KnownOfOthers(derivative=rows)

    def _derivative(self, client: Client, silo: int, heard: Mapping[int | None, Tensor]) -> Tensor:
        """The derivative at a client of the holder, for its rows of the parts answered."""
        part, me = self.about.answered, (client.silo, client.number)
        own = self.around.values[me]
        start = 0 if part is None else sum(client.counts(self.batch)[:part])
        end = start + len(client.labels(self.batch, part))
        if client.model.transfer is not None:
            return client.components(torch.cat(own), self.around.heads[me], client.labels(self.batch))
        others = {j: rows[start:end] for j, rows in self.others[me].items()}
        return client.derivatives(
            torch.cat(own) if part is None else own[part], others, self.around.heads.get(me),
            client.labels(self.batch, part), silo, heard.get(silo),
        )  # fmt: skip


def _sum(values: Sequence[Tensor], like: Tensor) -> Tensor:
    return torch.stack(list(values)).sum(0) if values else torch.zeros_like(like)
