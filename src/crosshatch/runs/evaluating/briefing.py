"""What the judge of a launched run is told beside the config."""

from __future__ import annotations

from dataclasses import dataclass

from crosshatch.data.federated import FederatedData
from crosshatch.simulator.client_metrics import client_called


@dataclass(frozen=True)
class Briefing:
    """The best objective and that of weights of zero, for `suboptimality`.

    With `evaluate.per_client` also which client of each silo holds each test row: name, what each client is called,
    owners, values of a column that clients stand for.
    """

    optimum: tuple[float, float] | None = None
    silos: tuple[tuple[str, tuple[str, ...], tuple[int, ...], tuple[str, ...]], ...] = ()

    @classmethod
    def of(cls, data: FederatedData, optimum: tuple[float, float] | None, *, per_client: bool) -> Briefing:
        silos = tuple(
            (one.name, tuple(client_called(data, one, k) for k in range(one.clients)), tuple(held.tolist()),
             one.client_names)
            for one in data.silos if per_client and (held := one.test_owners) is not None
        )  # fmt: skip
        return cls(optimum, silos)
