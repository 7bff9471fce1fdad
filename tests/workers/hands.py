"""Workers in this process: as many shards as there are hands, each of which may be replaced at any moment."""

from __future__ import annotations

import io
import pickle
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from crosshatch.simulator.simulator import Simulator
from crosshatch.task.task import Task
from crosshatch.testing.federations import FederationCase
from crosshatch.workers.crew import KINDS, PIECES, Crew, Given, Spent
from crosshatch.workers.employ import employ
from crosshatch.workers.requests import Request
from crosshatch.workers.shard import Shard


class Hands(Crew):
    """What travels is copied; with `dies` true before a request, the shard that gets it has just begun.

    With `apart` every tensor arrives inside a larger one, its numbers away from where torch's own begin.
    """

    def __init__(self, count: int, dies: Callable[[], bool] = lambda: False, *, apart: bool = False) -> None:
        self.pieces, self.spent, self.count, self._dies = PIECES, Spent(), count, dies
        self.replaced = 0
        self._pickler = _Apart if apart else pickle.Pickler

    def begin(self, task: Task, rows: Given, names: Mapping[int, str]) -> None:
        assert set(names) == set(range(self.pieces))
        self._task, self._rows = task, rows
        self._shards = [self._make(hand) for hand in range(self.count)]

    def _make(self, hand: int) -> Shard:
        return Shard(self._task, self._rows(range(hand, KINDS * self.pieces, self.count)), threads=1)

    def ask(self, requests: Sequence[Request]) -> list[Tensor]:
        began, each = time.perf_counter(), []
        answers: dict[int, Tensor] = {}
        for hand in range(self.count):
            if self._dies():
                self._shards[hand] = self._make(hand)
                self.replaced += 1
            mine = [i for i, one in enumerate(requests) if one.piece % self.count == hand]
            file = io.BytesIO()
            self._pickler(file).dump([requests[i] for i in mine])
            found, seconds = self._shards[hand].answer(pickle.loads(file.getvalue()))
            each.append(seconds)
            answers.update(zip(mine, found, strict=True))
        self.spent.add(began, each)
        return [answers[i] for i in range(len(requests))]

    def describe(self) -> dict[str, Any]:
        return {"workers": self.count}


class _Apart(pickle.Pickler):
    def reducer_override(self, value: Any) -> Any:
        return (_apart, (value.numpy(),)) if type(value) is Tensor else NotImplemented


def _apart(numbers: Any) -> Tensor:
    value = torch.tensor(numbers)
    room = value.new_empty(*value.shape, 3)
    room[..., 1] = value
    return room[..., 1]


def simulate(
    case: FederationCase, crew: Crew | None = None, *, rounds: int = 4, precision: torch.dtype = torch.float64
) -> Simulator:
    """Some rounds of a case."""
    simulator = Simulator(
        case.data, case.task, case.algorithm, seed=case.seed, codecs=case.codecs, precision=precision, threads=1
    )
    if crew is not None:
        employ(simulator, crew)
    for _ in range(rounds):
        simulator.run_round()
    return simulator


def same_bits(one: Simulator, other: Simulator) -> bool:
    return all(map(torch.equal, one.weights, other.weights)) and one.meter == other.meter
