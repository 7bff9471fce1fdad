"""Which federations an algorithm, a model or a codec does not run on; every party finds the same."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from math import prod
from typing import Any

import numpy as np

from crosshatch.codecs import AnyCodec, ErrorFeedback
from crosshatch.data.federated import FederatedData
from crosshatch.errors import ConfigError, ModelError
from crosshatch.local.read_chain import draws_random_numbers
from crosshatch.protocol.names import CODED
from crosshatch.task.losses import SampleWeighted
from crosshatch.task.task import Task
from crosshatch.topology import Topology


def check_head(data: FederatedData, task: Task) -> None:
    """Where one silo holds the labels it holds the head too."""
    if task.head_holder is not None and data.label_silo is not None:
        holder = data.silos[task.head_holder].name
        if holder != data.label_silo:
            raise ModelError(
                f"silo '{holder}' holds the head, '{data.label_silo}' the labels: derivatives need both in one place, "
                f"set model.head_holder = '{data.label_silo}'"
            )


def check_transfer(data: FederatedData, task: Task, name: str, topology: Topology) -> None:
    """Transfer is between two silos of one client each, and needs samples that both have."""
    if task.transfer is None:
        return
    holder = task.head_holder
    assert holder is not None
    if topology.above or topology.below or topology.vertical is None:
        raise ConfigError(
            f"algorithm {name} runs on {topology}, transfer between two silos on V alone: use fedsgd, fedbcd or abcd"
        )
    for silo, block in zip(data.silos, task.blocks, strict=True):
        if silo.clients > 1:
            raise ConfigError(
                f"model.fusion = 'transfer' takes one client per silo, '{silo.name}' has {silo.clients}: "
                "set federation.clients = 1"
            )
        if draws_random_numbers(block, silo.train[:2]):
            raise ModelError(
                f"the block of silo '{silo.name}' draws random numbers, and a class mean must not: take dropout out"
            )
    if data.alone is not None and data.alone.silo != data.silos[holder].name:
        raise ModelError(
            f"silo '{data.alone.silo}' has labelled samples of its own, '{data.silos[holder].name}' would hold the "
            f"class mean: set model.head_holder = '{data.alone.silo}'"
        )
    samples = len(data.y_train) + (0 if data.alone is None else len(data.alone.y))
    if task.transfer.mean_samples is not None and task.transfer.mean_samples > samples:
        raise ModelError(
            f"model.mean_samples = {task.transfer.mean_samples}: silo '{data.silos[holder].name}' has {samples} "
            "training samples, leave it out for all of them"
        )


def check_derivatives(data: FederatedData, task: Task, name: str, *, continued: bool) -> None:
    """Where derivatives are to go on (`continued`), the others can tell from what the label's holder sends them how."""
    if data.label_silo is None or not continued:
        return
    if task.transfer is not None:
        return  # components tell everything
    asked = f"algorithm {name} lets derivatives go on where silo '{data.label_silo}' holds the labels"
    if task.head is not None:
        raise ModelError(
            f"{asked}, but behind a trained head only its holder could follow them: "
            "set model.fusion = 'sum' or federation.labels = 'shared', or choose other derivatives or another algorithm"
        )
    if isinstance(task.loss, SampleWeighted):
        raise ModelError(
            f"{asked}, but a derivative does not tell how much of it is the sample's weight (data.sample_weights): "
            "set federation.labels = 'shared', or use tdcd with derivatives = 'each_step' or 'each_round'"
        )
    if not hasattr(task.loss, "continued"):
        raise ModelError(
            f"{asked}, but loss '{task.loss.name}' does not say how: give it a method continued(derivative, moved) "
            "that returns the derivative at scores moved so far since, or set federation.labels = 'shared'"
        )


def check_continued(*, head: bool) -> None:
    """A derivative goes on with a silo's own scores, which it has none of in front of a head."""
    if head:
        raise ModelError(
            "LocalSteps.continued: behind a trained head only its holder could follow a derivative: set "
            "model.fusion = 'sum' or federation.labels = 'shared', or leave it out"
        )


def check_turns(task: Task, name: str, topology: Topology, *, turns: bool) -> None:
    """Where silos take turns, what each of them needs of the others is there when its turn comes."""
    if turns and task.head is not None and topology.below:
        raise ModelError(
            f"algorithm {name} averages clients once per round, so that while silos take turns the head's holder has "
            "one head per client and no newest one to send: set algorithm.order = 'parallel' or model.fusion = 'sum', "
            "or use FedBCD with one client per silo"
        )


def check_optimiser(data: FederatedData, task: Task, name: str, codecs: Mapping[str, AnyCodec]) -> None:
    """An optimiser's steps and states are those that the algorithm with this name can take and send."""
    optimiser = task.optimiser
    if optimiser is None:
        return
    chosen = f"optimiser.name = '{optimiser.name}'"
    if task.regulariser.l1:
        raise ModelError(
            f"{chosen} with model.l1 = {task.regulariser.l1:g}: its proximal step would balance the l1 term against "
            "plain steps only: use model.l2, or optimiser.name = 'sgd'"
        )
    if optimiser.state != "averaged":
        return
    if data.branches:
        raise ConfigError(
            f"optimiser.state = 'averaged': algorithm {name} averages in branches, which have no states: set "
            "optimiser.state = 'kept' or 'reset', or leave federation.branches out"
        )
    for exchange in ("broadcast", "average", "average_groups"):
        if exchange in codecs:
            raise ConfigError(
                f"optimiser.state = 'averaged' sends states with the blocks, and codecs.{exchange} is about blocks "
                "alone: set optimiser.state = 'kept' or 'reset', or leave the codec out"
            )


def check_states_at_server(task: Task, name: str, alone: Collection[int], *, at_server: bool) -> None:
    """Where a server averages clients, a silo that is one party has no client whose state would travel with a block."""
    if at_server and alone and task.optimiser is not None and task.optimiser.state == "averaged":
        raise ConfigError(
            f"optimiser.state = 'averaged': algorithm {name} averages clients at the server, and silo "
            f"'{task.names[min(alone)]}' is one party, which keeps its state: set optimiser.state = 'kept' or 'reset'"
        )


def require_memory(algorithm: object, returned: Any) -> tuple[Any, tuple[Any, ...]]:
    """What a round of an algorithm that declares `remembers` returned: blocks and memory."""
    # The blocks of groups are a tuple too: two of them alone have a group's blocks in the memory's place.
    if not isinstance(returned, tuple) or len(returned) != 2 or not isinstance(returned[1], tuple):
        raise ConfigError(
            f"algorithm {type(algorithm).__name__} declares `remembers`, but its run_round does not return a memory, "
            "which is a tuple: end it with `return blocks, memory`, or declare `remembers = False`"
        )
    return returned


def check_codecs(data: FederatedData, codecs: Mapping[str, AnyCodec]) -> None:
    """No codec on an exchange that does not exist, and none that would need a memory where there is none."""
    for exchange in codecs:
        if exchange not in CODED:
            raise ConfigError(f"codecs has {exchange!r}: the exchanges are {', '.join(CODED)}")
    codec = codecs.get("broadcast")
    if data.branches and isinstance(codec, ErrorFeedback):
        raise ConfigError(
            f"codecs.broadcast = '{codec}': error feedback would need a memory in every branch (federation.branches): "
            f"use '{codec.codec}', or leave the branches out"
        )


def check_window(data: FederatedData, window: int, batch_size: int | None) -> None:
    """The samples of the last rounds must fit into half of this machine's memory."""
    rows = len(data.y_train) if batch_size is None else min(batch_size, len(data.y_train))
    if window == 1 or rows == len(data.y_train):
        return  # all samples are in memory as it is
    size = window * rows * sum(silo.train[0].nbytes for silo in data.silos)
    room = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
    if size > room:
        raise ConfigError(
            f"algorithm.window = {window}: the samples of so many rounds take {size / 1e9:.3g} GB, half of this "
            f"machine's memory is {room / 1e9:.3g} GB: use at most {max(1, room * window // size)}"
        )


def check_topology(data: FederatedData, name: str, topology: Topology) -> None:
    """Groups, branches and silos are those that the tiers of the algorithm with this name ask for."""
    groups = 1 if data.groups is None else len(np.unique(data.groups))
    if groups > 1 and not topology.above:
        raise ConfigError(
            f"algorithm {name} runs on {topology}, the federation has {groups} groups: "
            "set federation.groups = 1, or use HSGD"
        )
    if groups > 1 and len(topology.above) != len(data.group_shape or (groups,)):
        raise ConfigError(
            f"algorithm {name} has {_tiers(len(topology.above))} above the vertical one ({topology}), "
            f"federation.groups nests {len(data.group_shape)}: give one number a tier, for example [2, 5]"
        )
    wanted = max(0, len(topology.below) - 1)
    if wanted != len(data.branches):
        remedy = "leave it out" if wanted == 0 else f"give {wanted} number{'s' * (wanted > 1)} above 1"
        raise ConfigError(
            f"algorithm {name} on {topology} takes {_tiers(wanted)} of branches, federation.branches has "
            f"{len(data.branches)}: {remedy}, or change the tiers (algorithm 'tiered')"
        )
    if topology.vertical is None and len(data.silos) > 1:
        raise ConfigError(f"algorithm {name} takes one silo, this federation has {len(data.silos)}: use TDCD")


def check_clients(data: FederatedData, name: str, topology: Topology, *, pairs: bool, several: str, where: str) -> None:
    """The same for the clients of one federation, or of a group; `several` is what the algorithm would have them by."""
    for silo in data.silos:
        if 1 < silo.clients < prod(data.branches):
            raise ConfigError(
                f"federation.branches makes {prod(data.branches)} branches a silo, '{silo.name}' has {silo.clients} "
                f"clients{where}: every branch needs one"
            )
        if silo.clients > 1 and not topology.below and not pairs:
            other = several or ("HSGD" if topology.above else "TDCD or ABCD")
            raise ConfigError(
                f"algorithm {name} on {topology} takes one client per silo, '{silo.name}' has {silo.clients}{where}: "
                f"set clients = 1, or use {other}"
            )


def _tiers(count: int) -> str:
    return "1 tier" if count == 1 else f"{count} tiers"


def check_selects(fraction: float, *, says_so: bool) -> None:
    """A text that selects clients must have said so: parties are told beforehand who holds which sample."""
    if not says_so:
        raise ConfigError(
            "select: parties know who holds which sample for texts alone that say so: give the algorithm a field "
            f"`fraction`, which is below 1 where it selects (here {fraction:g})"
        )


def check_server_keeps(*, says_so: bool) -> None:
    """So must one whose server sends blocks to clients itself, and averages them."""
    if not says_so:
        raise ConfigError(
            "within='federation': the server knows clients for texts alone that say so: declare "
            "`within = 'federation'` in the algorithm's class"
        )
