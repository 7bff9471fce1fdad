"""What parties know of a batch from earlier exchanges, and what an exchange has to send: every party finds the same."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from math import isfinite

import numpy as np

from crosshatch.errors import ConfigError
from crosshatch.local.local_steps import LocalSteps
from crosshatch.protocol.batches import Ids

Stamp = tuple[int, int]
"""Which `embed` made some embeddings: its round, and how many there were before it in that round."""
Samples = tuple[Ids, ...]
"""The ids of a batch, part by part: two batches are one where these are equal."""


def find_route(
    made: Sequence[Stamp],
    seen: Mapping[int, Mapping[int, Stamp]],
    holder: int | None,
    senders: Iterable[int] | None,
    to: int | None,
) -> tuple[list[int], list[int]]:
    """Who sends embeddings, and who gets to know something; where a silo holds the labels all send to it alone.

    By default those send of whom somebody has not seen just these embeddings: `made` are the stamps of all silos', and
    `seen` those of what each silo has seen of the others.

    >>> find_route([(3, 0), (3, 1), (3, 0)], {0: {1: (3, 0), 2: (3, 0)}}, None, None, 0)
    ([1], [0])
    """
    if to is not None:
        check_silo("to", to, len(made))
    receivers = list(range(len(made))) if to is None else [to]
    seeing = receivers if holder is None else [holder]
    if senders is None:
        sending = [j for j, one in enumerate(made) if any(i != j and seen.get(i, {}).get(j) != one for i in seeing)]
        return sending, receivers
    named = sorted(set(senders))
    for silo in named:
        check_silo("senders", silo, len(made))
    return [j for j in named if seeing != [j]], receivers


def find_parts(local: LocalSteps, parts: Sequence[int]) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """The parts that local steps go through, and those that have to be at hand: by batch (newest first) and number.

    `parts` is how many each batch has. Who has nothing of an earlier part takes the newest in its place.

    >>> find_parts(LocalSteps(1, 0.1, first=2), [2, 1])
    ([(1, 0)], [(0, 0), (0, 1), (1, 0)])
    """
    every = [(number, s) for number, count in enumerate(parts) for s in range(count)]
    used = every if local.steps > 1 else [every[local.first % len(every)]]
    return used, used if used[0][0] == 0 else [*every[: parts[0]], *used]


def check_silo(what: str, silo: int, silos: int) -> None:
    """Silos are numbered from 0 on."""
    if not 0 <= silo < silos:
        raise ConfigError(f"{what} names silo number {silo}: silos are numbered from 0 to {silos - 1}, as in fed.silos")


def check_decision(value: float, by: int, silos: int) -> None:
    """A decision is a number of a silo's hub."""
    check_silo("by", by, silos)
    if not isfinite(value):
        raise ConfigError(f"decide: {value} is to be told to all parties: decide on a finite number, or yes or no")


def check_samples(what: str, samples: Samples, batch: Samples) -> None:
    """Embeddings and what is frozen belong to the batch that is handed in with them."""
    if samples is not batch and (len(samples) != len(batch) or not all(map(np.array_equal, samples, batch))):
        raise ConfigError(
            f"{what}: embeddings, or what is frozen, are of other samples than the batch: hand in those of one batch"
        )


def check_only(only: int, known: Samples | None, batch: Samples, silos: int) -> None:
    """One silo alone embeds where the others' embeddings of the batch are there already."""
    check_silo("only", only, silos)
    if known is None:
        if silos > 1:
            raise ConfigError(
                f"embed: only={only} without the others' embeddings: give what embed returned of the batch as known="
            )
        return
    check_samples("embed", known, batch)


def check_seen(seen: Collection[int], others: Iterable[int]) -> None:
    """Before a silo goes on with what it saw of the others, it has seen something of each."""
    for silo in others:
        if silo not in seen:
            raise ConfigError(
                f"exchange: silo number {silo} does not send, and nothing it sent of this batch is known: name it in "
                "senders, or give what an earlier exchange of the batch returned as known="
            )


def check_told(silo: int, *, told: bool) -> None:
    """Before a silo makes local steps it knows something of the others for the samples of each."""
    if not told:
        raise ConfigError(
            f"descend: silo number {silo} was not told of the others for all samples of these steps: exchange with it "
            "before, or name those who were told in only="
        )


def check_sent(silo: int, at_work: Ids, sent_to: Ids | None) -> None:
    """Clients work with blocks that somebody sent them."""
    if sent_to is None or not np.isin(at_work, sent_to).all():
        raise ConfigError(
            f"clients of silo number {silo} have samples of the batch and were not sent their block since the last "
            "average: broadcast the blocks to this batch before"
        )
