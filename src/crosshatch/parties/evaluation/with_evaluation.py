"""Parties that evaluate: each gets its own half of the evaluation and its own rows; held labels are kept back here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from crosshatch.data.federated import FederatedData
from crosshatch.exchanges import on_duals, on_tokens, with_division
from crosshatch.parties.agents.token_roles import SERVER, has_server
from crosshatch.parties.evaluation.agent_evaluation import AgentEvaluation, TokenServerEvaluation
from crosshatch.parties.evaluation.held_out import held_out, validation_rows
from crosshatch.parties.evaluation.silo_evaluation import SiloEvaluation
from crosshatch.parties.evaluation.text import EvaluatingFederation, Evaluation, Judge
from crosshatch.parties.holdings.steps import EvaluationSteps
from crosshatch.parties.line import Name
from crosshatch.parties.names_of_parties import hub_name
from crosshatch.parties.party import Party
from crosshatch.parties.post import Post
from crosshatch.parties.roles.client_role import ClientRole
from crosshatch.parties.roles.hub_role import HubRole
from crosshatch.parties.roles.role import Role
from crosshatch.parties.vertical_parties import Group, vertical_parties
from crosshatch.protocol.members import Member
from crosshatch.task.task import Task

_PREFIX = "evaluate "


@dataclass(frozen=True)
class EvaluationPlan:
    """When the model is looked at, and on what.

    `held` are the rows held out as a federation of their own, the first `validation` of them to choose a round by; the
    objective is that of the first `train_samples` training samples, or of all. `judge` is needed where the label's
    holder is.
    """

    held: FederatedData
    validation: int
    every: int
    rounds: int
    train_samples: int | None = None
    judge: Judge | None = None

    @classmethod
    def of(cls, data: FederatedData, every: int, rounds: int, judge: Judge | None = None) -> EvaluationPlan:
        """That of the rows that all the data hold out."""
        return cls(held_out(data), validation_rows(data), every, rounds, judge=judge)


def holder_of(data: FederatedData) -> int:
    """Whose clients score and whose hub measures: the label's holder, or the first silo where all have labels."""
    return 0 if data.label_silo is None else data.label_holder


def judging_party(parties: Mapping[Name, Party], data: FederatedData) -> Name:
    """Where all figures are found."""
    return next((name for name in parties if name.startswith("agent")), hub_name(0, holder_of(data)))


def with_evaluation(
    parties: Mapping[Name, Party], data: FederatedData, task: Task, algorithm: Any, plan: EvaluationPlan, *, seed: int
) -> None:
    alone = replace(task, optimiser=None)
    graph = on_tokens(algorithm) or on_duals(algorithm)
    make = _of_agents if graph else _of_silos
    for name, fed in make(parties, data, alone, algorithm, plan, seed).items():
        parties[name].evaluation = Evaluation(fed, plan.every, plan.rounds)


def held_parties(
    parties: Mapping[Name, Party], held: FederatedData, task: Task, algorithm: Any, *, seed: int
) -> dict[Name, Party]:
    """These parties of the first group with their rows held out; labels are with the clients of the holder alone."""
    text, holder = with_division(algorithm), holder_of(held)
    beforehand = next(iter(parties.values())).role.beforehand
    group = Group.of(0, Member(held, "", seed, seed), replace(task, optimiser=None), text, beforehand, {}, "plain")
    found = group.parties(text, 1, (), parties)
    for party in found.values():
        assert isinstance(party.role, Role)
        party.role.selection = None
        if isinstance(party.role, ClientRole) and party.role.silo != holder:
            party.role.client.y = None
    return {name: party for name, party in found.items() if isinstance(party.role, ClientRole | HubRole)}


def _of_silos(
    parties: Mapping[Name, Party], data: FederatedData, task: Task, algorithm: Any, plan: EvaluationPlan, seed: int
) -> dict[Name, EvaluatingFederation]:
    held = held_parties(parties, plan.held, task, algorithm, seed=seed)
    beforehand = next(iter(parties.values())).role.beforehand
    most = len(data.y_train) if plan.train_samples is None else plan.train_samples
    groups = np.zeros(len(data.y_train), dtype=np.int64) if data.groups is None else data.groups
    looked_at = [int((np.flatnonzero(groups == g) < most).sum()) for g in np.unique(groups)]
    found: dict[Name, EvaluatingFederation] = {}
    twins = vertical_parties(
        data, task, algorithm, seed=seed, codecs={}, way="plain", only=parties, beforehand=beforehand
    )
    for name, twin in twins.items():
        role, own = twin.role, parties[name].role
        assert isinstance(role, Role)
        role.post.prefix, role.post.follows, role.post.followers = _PREFIX, own.post.follows, own.post.followers
        if isinstance(role, ClientRole) and isinstance(own, ClientRole):
            role.client = replace(role.client, x=own.client.x, y=own.client.y)
        beside = held[name].role if name in held else None
        assert beside is None or isinstance(beside, Role)
        if beside is not None:
            beside.post, beside.uses = role.post, role.uses
        for one in (role, beside):  # with the class mean that is in the block, and without steps
            if isinstance(one, ClientRole):
                one.client = replace(one.client, anchors=None, steps=EvaluationSteps(one.client.model))
            elif isinstance(one, HubRole):
                one.anchored = False
        holder = holder_of(data)
        found[name] = SiloEvaluation(
            post=role.post, role=role, held=beside, looked_at=looked_at[role.group], validation=plan.validation,
            holder=holder, regulariser=task.regulariser,
            judging=plan.judge if name == hub_name(0, holder) else None,
        )  # fmt: skip
    return found


def _of_agents(
    parties: Mapping[Name, Party], data: FederatedData, task: Task, algorithm: Any, plan: EvaluationPlan, seed: int
) -> dict[Name, EvaluatingFederation]:
    import networkx as nx  # takes a while

    graph = algorithm.graph.build(task.names, seed=seed)
    above = dict(nx.bfs_predecessors(graph, 0))
    found: dict[Name, EvaluatingFederation] = {}
    for name, party in parties.items():
        role: Any = party.role
        post = Post(data.silos[0].train.dtype, prefix=_PREFIX)
        if name == SERVER:
            found[name] = TokenServerEvaluation(post=post)
            continue
        number = role.agent.number
        first = number == 0
        found[name] = AgentEvaluation(
            agent=role.agent, held=plan.held.silos[number].train.clone(), validation=plan.validation,
            labels=plan.held.y_train.clone() if first else None, above=above.get(number), post=post,
            serves=on_tokens(algorithm) and has_server(algorithm, role.beforehand),
            looked_at=len(data.y_train) if plan.train_samples is None else plan.train_samples,
            below=tuple(sorted(k for k, up in above.items() if up == number)), judging=plan.judge if first else None,
        )  # fmt: skip
    return found
