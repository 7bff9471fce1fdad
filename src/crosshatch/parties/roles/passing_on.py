"""What a hub passes on to another: its clients' rows in the batch's order, or all their encoded bytes; and heads.

Bytes can only be taken apart, and decoded, client by client. So with them goes of each row whose it is: the other hub
sees which of these rows one client has. Where no codec is used it does not.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from torch import Tensor

from crosshatch.parties.holdings.agreed import Agreed, Batch
from crosshatch.parties.roles.block_averaging import Keeper, told_to_each
from crosshatch.protocol.batches import Ids
from crosshatch.protocol.message_contents import Call, holder_bytes


def gather(
    keeper: Keeper, exchange: str, silo: int, given: Mapping[int, Tensor], batch: Batch, part: int | None
) -> list[Tensor]:
    """What clients sent about their rows, for another hub; the rows are about the embeddings of a silo."""
    agreed, roster, ids = keeper.agreed, keeper.roster, batch.ids(part)
    if exchange in agreed.codecs:
        whose = _written(roster.owners[ids], holder_bytes(roster.clients))
        return [torch.cat(list(given.values())), *([whose] if roster.clients > 1 else [])]
    every = torch.empty(len(ids), agreed.width(exchange, silo), dtype=agreed.dtype)
    for client, rows in given.items():
        every[roster.rows(client, batch, part)] = rows
    return [every]


def read(
    keeper: Keeper, exchange: str, name: str, silo: int, contents: Sequence[Tensor], batch: Batch, part: int | None,
    call: Call,
) -> Tensor:  # fmt: skip
    """Rows (n, width) in the batch's order from what another hub gathered, about the embeddings of a silo."""
    agreed, channels = keeper.agreed, keeper.channels
    if exchange not in channels.codecs:
        return contents[0]
    width, ids = agreed.width(exchange, silo), batch.ids(part)
    holders = _numbers(contents[1]) if len(contents) > 1 else np.zeros(len(ids), dtype=np.int64)
    clients, counts = np.unique(holders, return_counts=True)
    sizes = [channels.codecs[exchange].size((n, width), agreed.dtype) for n in counts.tolist()]
    every = torch.empty(len(ids), width, dtype=agreed.dtype)
    for client, message in zip(clients.tolist(), torch.split(contents[0], sizes), strict=True):
        draw, place = channels.draw(exchange, name, (call.round, call.use), client), np.flatnonzero(holders == client)
        every[place] = channels.read(draw, message, width, agreed.dtype, ids[place], agreed.samples)
    return every


def put_together(agreed: Agreed, arrived: Mapping[int, Tensor], seen: Mapping[int, Tensor]) -> Tensor:
    """What a hub tells its clients of the other silos: the sum of all, or each one's that is new side by side."""
    if agreed.head_holder is not None:
        return torch.cat([arrived[j] for j in sorted(arrived)], dim=1)
    return torch.stack([seen[j] for j in sorted(seen)]).sum(0)


def told_to_holders(
    agreed: Agreed, new: Mapping[int, Tensor], seen: Mapping[int, Tensor], batch: Batch, part: int | None
) -> list[Tensor]:
    """What the label's clients are told: each silo's, or one sum; within a round each with what it saw of others."""
    if agreed.head_holder is not None:
        return list(new.values())
    if part is None:
        return [torch.stack(list(seen.values())).sum(0)]
    start = sum(len(ids) for ids in batch.parts[:part])
    place = slice(start, start + len(batch.parts[part]))
    rest = {j: [seen[i][place] for i in seen if i != j] for j in new}
    return [own + (torch.stack(rest[j]).sum(0) if rest[j] else torch.zeros_like(own)) for j, own in new.items()]


def pass_head(keeper: Keeper, content: Tensor, name: str, clients: list[int], call: Call) -> dict[int, Tensor]:
    """The head's message for the clients at work; those who missed the last one get the head whole."""
    channels, draw = keeper.channels, keeper.channels.draw("head", name, (call.round, call.use))
    whole = channels.read_vector(draw, content, keeper.vectors.head_size, keeper.agreed.dtype)
    return told_to_each(channels, "head", name, clients, content, whole)


def _written(holders: Ids, size: int) -> Tensor:
    """Numbers of clients (n,) as that many bytes each."""
    return torch.as_tensor(holders.astype("<i8").view(np.uint8).reshape(-1, 8)[:, :size].copy())


def _numbers(written: Tensor) -> Ids:
    whole = np.zeros((len(written), 8), dtype=np.uint8)
    whole[:, : written.shape[1]] = written.numpy()
    numbers: Ids = whole.view("<i8")[:, 0].astype(np.int64)
    return numbers
