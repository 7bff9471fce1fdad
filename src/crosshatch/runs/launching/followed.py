"""Processes that train the model: the simulator counts bytes and seconds along, and takes the model from them.

At every round whose states they keep, it waits for them, reads what they have stored, and notes how far it is from it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import torch
from torch import Tensor

from crosshatch.errors import RunError
from crosshatch.meter import Meter
from crosshatch.parties.line import Name
from crosshatch.parties.onlooker import model_of, total
from crosshatch.parties.party import Party
from crosshatch.parties.recovery.kinds import KINDS
from crosshatch.parties.recovery.packed_state import unpack
from crosshatch.runtime.store import Store
from crosshatch.simulator.graph.graph_state import DualState, TokenState
from crosshatch.simulator.state import VerticalState

_LOOK = 0.02  # seconds between two looks
_ROUNDING = {torch.float64: 1e-6, torch.float32: 1e-3}  # what other orders of sums may come to in a run that converges


def distance(ours: Sequence[Tensor], theirs: Sequence[Tensor]) -> float:
    """The largest difference of two models, relative to their largest weight.

    Weights that are finite in one of them alone are infinitely far apart, those that are in neither are left out.

    >>> distance([torch.tensor([4.0, 3.0])], [torch.tensor([4.0, 2.0])])
    0.25
    """
    one, two = (torch.cat([block.flatten().double() for block in model]) for model in (ours, theirs))
    if not torch.equal(one.isfinite(), two.isfinite()):
        return float("inf")
    one, two = one[one.isfinite()], two[two.isfinite()]
    largest = max((float(model.abs().max()) for model in (one, two) if len(model)), default=0.0)
    return float((one / largest - two / largest).abs().max()) if largest else 0.0


class Followed:
    """The processes of a run, for `elsewhere` of a state.

    `homes` are the folders of the parties, `keep` the rounds whose states they keep, `check` raises where a process
    cannot go on.
    """

    def __init__(
        self, inner: VerticalState | TokenState | DualState, meter: Meter, parties: Mapping[Name, Party],
        homes: Mapping[Name, Path], run: str, keep: frozenset[int], check: Callable[[], None],
    ) -> None:  # fmt: skip
        self.inner, self.meter, self.parties, self.homes = inner, meter, parties, homes
        self.run, self.keep, self.check = run, keep, check
        self.furthest: float | None = None  # of the processes' model from the simulator's, in all rounds that were read
        self.is_far = False  # farther than by rounding
        self.weights: tuple[Tensor, ...] | None = None

    def after_round(self, r: int) -> None:
        """Wait for the processes where they keep their states."""
        self.weights = None
        if r + 1 in self.keep:
            self._read(r + 1)

    def _read(self, round: int) -> None:
        waiting = dict(self.homes)
        while waiting:
            self.check()
            for name, home in list(waiting.items()):
                written = Store(home).read(round)
                if written is not None:
                    self.parties[name].load(unpack(written, KINDS, run=self.run, party=name).value)
                    del waiting[name]
            if waiting:
                time.sleep(_LOOK)
        self.weights = model_of(self.parties)
        self.furthest = max(self.furthest or 0.0, distance(self.weights, self.inner.own_weights))
        self.is_far = self.furthest > _ROUNDING[self.weights[0].dtype]
        sent = total(party.meter for party in self.parties.values())
        if (sent.links, sent.exchanges) != (self.meter.links, self.meter.exchanges):
            raise RunError(
                f"round {round}: the processes have sent {sent.bytes} bytes, the simulator {self.meter.bytes}"
            )
