"""An algorithm run party by party, as plainly as it can be: what every faster engine is held against."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import torch
from torch import Tensor

from crosshatch.codecs import AnyCodec
from crosshatch.data.federated import FederatedData
from crosshatch.exchanges import (
    Algorithm,
    DualAlgorithm,
    RememberingAlgorithm,
    TokenAlgorithm,
    on_duals,
    on_federation,
    on_silos,
    on_tokens,
)
from crosshatch.meter import Meter
from crosshatch.protocol.class_means import with_class_mean
from crosshatch.seeds import require_seed
from crosshatch.task.losses import require_labels, unweighted
from crosshatch.task.task import Task
from crosshatch.testing.parties.graph.dual_parties import DualParties
from crosshatch.testing.parties.graph.token_parties import TokenParties
from crosshatch.testing.parties.post import Post
from crosshatch.testing.parties.vertical_parties import VerticalParties


class PartyByParty:
    """Every party of a federation in one process, strangers to each other: what passes between them are bytes.

    >>> from crosshatch.algorithms.tdcd import TDCD
    >>> from crosshatch.data.build import federate, load_dataset
    >>> from crosshatch.data.data_settings import FederationSettings
    >>> from crosshatch.task.fusion import Sum
    >>> from crosshatch.task.losses import Logistic
    >>> data = federate(load_dataset("breast_cancer"), FederationSettings(silos=2, clients=3), seed=1)
    >>> blocks = tuple(torch.nn.Linear(silo.train.shape[1], 1) for silo in data.silos)
    >>> parties = PartyByParty(data, Task(blocks, Sum(), Logistic()), TDCD(local_steps=5, batch_size=64))
    >>> parties.run_round()
    >>> sorted(parties.meter.links)
    ['client-hub down', 'client-hub up', 'hub-hub across']
    """

    def __init__(
        self,
        data: FederatedData,
        task: Task,
        algorithm: Algorithm | RememberingAlgorithm | TokenAlgorithm | DualAlgorithm,
        *,
        seed: int = 0,
        codecs: Mapping[str, AnyCodec] | None = None,
        precision: torch.dtype = torch.float64,
    ) -> None:
        """Cut the data into what each party holds; weights start as the task's modules have them."""
        require_seed(seed)
        require_labels(task.loss, data.y_train, data.classes, "training samples")
        require_labels(unweighted(task.loss), data.y_test, data.classes, "test samples")
        data = _cast(data, precision)
        task = with_class_mean(task.to("cpu", precision), data)
        algorithm = on_federation(algorithm, data)
        self.post, self.round = Post(), 0
        coded = codecs or {}
        self.parties: VerticalParties | TokenParties | DualParties
        if on_tokens(algorithm):
            self.parties = TokenParties(data, task, algorithm, seed=seed, codecs=coded, post=self.post)
        elif on_duals(algorithm):
            self.parties = DualParties(data, task, algorithm, seed=seed, codecs=coded, post=self.post)
        else:
            assert on_silos(algorithm)
            self.parties = VerticalParties(data, task, algorithm, seed=seed, codecs=coded, post=self.post)

    @property
    def meter(self) -> Meter:
        """Bytes and messages by link and by exchange."""
        return self.post.meter

    @property
    def weights(self) -> tuple[Tensor, ...]:
        """The model, one flat vector per silo, as somebody would see it who could look at all parties."""
        return self.parties.weights

    def run_round(self) -> None:
        """The algorithm's text, once, for all parties."""
        self.parties.run_round(self.round)
        self.round += 1


def _cast(data: FederatedData, precision: torch.dtype) -> FederatedData:
    silos = tuple(
        replace(s, train=s.train.to(precision), test=s.test.to(precision), validation=None) for s in data.silos
    )
    y_train, y_test = (y.to(precision) if y.is_floating_point() else y for y in (data.y_train, data.y_test))
    alone = data.alone
    if alone is not None:
        alone = replace(alone, x=alone.x.to(precision), y=alone.y.to(precision))
    return replace(data, silos=silos, y_train=y_train, y_test=y_test, y_validation=None, alone=alone)
