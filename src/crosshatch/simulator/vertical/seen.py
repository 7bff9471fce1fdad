"""What silos have got to see of each other for the samples drawn last, so that who sent it need not send it again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from torch import Tensor

Rows = tuple[Tensor, ...]
"""A silo's embeddings, part by part in the batch's order."""


@dataclass
class Seen:
    """By sender; `_own` is by receiver what it got later than everybody."""

    _all: dict[int, Rows] = field(default_factory=dict)
    _own: dict[int, dict[int, Rows]] = field(default_factory=dict)
    _heads: dict[int, Tensor] = field(default_factory=dict)  # by receiver

    def forget(self) -> None:
        """There are other samples."""
        self._all.clear()
        self._own.clear()
        self._heads.clear()

    def note(self, arrived: Mapping[int, Rows], to: int | None) -> None:
        """This arrived at everybody, or at one silo."""
        if to is not None:
            self._own.setdefault(to, {}).update(arrived)
            return
        self._all.update(arrived)
        for own in self._own.values():
            for sender in arrived:
                own.pop(sender, None)

    def note_head(self, head: Tensor, receivers: Sequence[int]) -> None:
        """The head as it arrived at these silos."""
        self._heads.update(dict.fromkeys(receivers, head))

    def by(self, receiver: int) -> dict[int, Rows]:
        """What a silo has seen last of each other."""
        return self._all | self._own.get(receiver, {})

    def heads(self, receivers: Sequence[int]) -> list[Tensor]:
        """The heads that these silos have, each of them once."""
        return list({id(head): head for head in (self._heads[i] for i in receivers)}.values())
