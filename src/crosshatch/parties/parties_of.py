"""Every party of a federation, each with its own share of the data and nothing else."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

import torch

from crosshatch.codecs import AnyCodec
from crosshatch.data.federated import FederatedData, move
from crosshatch.exchanges import on_duals, on_federation, on_tokens
from crosshatch.parties.agents.dual_role import dual_agents
from crosshatch.parties.agents.token_roles import token_agents
from crosshatch.parties.evaluation.with_evaluation import EvaluationPlan, with_evaluation
from crosshatch.parties.holdings.agreed import Beforehand
from crosshatch.parties.holdings.steps import Way
from crosshatch.parties.line import Name
from crosshatch.parties.party import Party
from crosshatch.parties.vertical_parties import vertical_parties
from crosshatch.protocol.class_means import with_class_mean
from crosshatch.seeds import require_seed
from crosshatch.task.fit import Elsewhere
from crosshatch.task.losses import require_labels, unweighted
from crosshatch.task.task import Task


def parties_of(
    data: FederatedData,
    task: Task,
    algorithm: Any,
    *,
    seed: int = 0,
    codecs: Mapping[str, AnyCodec] | None = None,
    precision: torch.dtype = torch.float64,
    steps: Way = "plain",
    evaluation: EvaluationPlan | None = None,
    only: Collection[Name] | None = None,
    beforehand: Beforehand | None = None,
) -> dict[Name, Party]:
    """Cut the data into what each party holds; weights start as the task's modules have them.

    They are on no line yet, see `Party.join`. Clients take their steps as plainly as can be, or by `local` ("solved").
    With an `evaluation` they evaluate besides. `only`: these parties alone, from data and blocks of which none but
    their own need be there; `beforehand` is then what all had settled.

    >>> from crosshatch.testing.federations import vertical_cases
    >>> case = vertical_cases()[0]
    >>> list(parties_of(case.data, case.task, case.algorithm))[:2]
    ['hub-0-0', 'client-0-0-0']
    """
    require_seed(seed)
    require_labels(task.loss, data.y_train, data.classes, "training samples")
    require_labels(unweighted(task.loss), data.y_test, data.classes, "test samples")
    data = move(data, "cpu", precision)
    task = task.to("cpu", precision)
    if task.head_holder is None or not isinstance(task.blocks[task.head_holder], Elsewhere):
        task = with_class_mean(task, data)
    algorithm, coded = on_federation(algorithm, data), codecs or {}
    if on_tokens(algorithm):
        parties = token_agents(data, task, algorithm, seed=seed, codecs=coded, only=only, beforehand=beforehand)
    elif on_duals(algorithm):
        parties = dual_agents(data, task, algorithm, seed=seed, codecs=coded, only=only, beforehand=beforehand)
    else:
        parties = vertical_parties(
            data, task, algorithm, seed=seed, codecs=coded, way=steps, only=only, beforehand=beforehand
        )
    if evaluation is not None:
        plan = replace(evaluation, held=move(evaluation.held, "cpu", precision))
        with_evaluation(parties, data, task, algorithm, plan, seed=seed)
    return parties
