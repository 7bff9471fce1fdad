"""An algorithm run by its parties in turn, in one process and in memory: what every faster engine is held against."""

from typing import Any

from torch import Tensor

from crosshatch.data.federated import FederatedData
from crosshatch.meter import Meter
from crosshatch.parties.parties_of import parties_of
from crosshatch.parties.seeing_all import model_of, total
from crosshatch.task.task import Task
from crosshatch.testing.parties.turns import TurnLine, Turns


class PartyByParty:
    """Every party of a federation, strangers to each other: what passes between them are bytes.

    >>> import torch
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

    def __init__(self, data: FederatedData, task: Task, algorithm: Any, **settings: Any) -> None:
        """Cut the data into what each party holds; the settings are those of `parties_of`."""
        self.parties = parties_of(data, task, algorithm, **settings)
        self.turns, self.round = Turns(), 0
        for name, party in self.parties.items():
            party.join(TurnLine(name, self.turns))

    @property
    def meter(self) -> Meter:
        return total(party.meter for party in self.parties.values())

    @property
    def weights(self) -> tuple[Tensor, ...]:
        """The model, one flat vector per silo, as somebody would see it who could look at all parties."""
        return model_of(self.parties)

    def run_round(self) -> None:
        self.turns.run({name: party.run_round for name, party in self.parties.items()})
        self.round += 1
