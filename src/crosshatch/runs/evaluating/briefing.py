"""What the judge of a launched run is told beside the config."""

from __future__ import annotations

from dataclasses import dataclass

from crosshatch.data.federated import FederatedData


@dataclass(frozen=True)
class Briefing:
    """The best objective and that of weights of zero, for `suboptimality`.

    With `evaluate.per_client` also which client of each silo holds each test row: name, clients, owners, their names.
    """

    optimum: tuple[float, float] | None = None
    silos: tuple[tuple[str, int, tuple[int, ...], tuple[str, ...]], ...] = ()

    @classmethod
    def of(cls, data: FederatedData, optimum: tuple[float, float] | None, *, per_client: bool) -> Briefing:
        named = [(one.name, one.clients, one.test_owners, one.client_names) for one in data.silos]
        silos = tuple((*start, tuple(held.tolist()), last) for *start, held, last in named if held is not None)
        return cls(optimum, silos if per_client else ())  # type: ignore[arg-type]
