"""Values are data: `check_values` hands an algorithm copies of every value that went through bytes, at every point.

Between an algorithm's text and its federation stands somebody who pickles and reads again whatever the text is given
and gives back: what is kept beside a value, and not in it, is lost. So is what the simulator keeps for speed, now and
then.
"""

import pickle
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from random import Random
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor

from crosshatch.simulator.simulator import Simulator
from crosshatch.simulator.state import VerticalState
from crosshatch.testing.federations import FederationCase

_EMPTIED = 0.3  # how often what is kept for speed is thrown away


def same_value(one: Any, other: Any) -> bool:
    """Whether two values say the same, to the bit: tensors, arrays, numbers, and what is made of them.

    >>> same_value({0: (torch.ones(2), 3)}, {0: (torch.ones(2), 3)}), same_value(torch.ones(2), torch.zeros(2))
    (True, False)
    """
    if type(one) is not type(other):
        return False
    if isinstance(one, Tensor):
        return one.dtype == other.dtype and torch.equal(one, other)
    if isinstance(one, np.ndarray):
        return np.array_equal(one, other)
    if isinstance(one, Mapping):
        return one.keys() == other.keys() and all(same_value(one[key], other[key]) for key in one)
    if isinstance(one, tuple | list):
        return len(one) == len(other) and all(map(same_value, one, other))
    if isinstance(one, torch.nn.Module):
        return same_value(dict(one.state_dict()), dict(other.state_dict()))
    if is_dataclass(one):
        names = [field.name for field in fields(one)]
        return all(same_value(getattr(one, name), getattr(other, name)) for name in names)
    return bool(one == other)


class Copying:
    """A federation that is told, and tells, copies alone; `empty` is called before every exchange."""

    def __init__(self, federation: Any, empty: Any) -> None:
        self._federation, self._empty = federation, empty

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._federation, name)
        if not callable(found):
            return found

        def ask(*given: Any, **named: Any) -> Any:
            self._empty()
            answer = found(*map(_copied, given), **{key: _copied(value) for key, value in named.items()})
            return _copied(answer)

        return ask


def _copied(value: Any) -> Any:
    copy = pickle.loads(pickle.dumps(value))
    assert same_value(value, copy), f"a {type(value).__name__} is another one after it was pickled"
    return copy


def check_values(case: FederationCase, *, rounds: int = 3, seed: int = 0, tolerance: float = 1e-12) -> float:
    """The largest difference of any weight between rounds as they are and those of copied values.

    An AssertionError says what is wrong.

    >>> from crosshatch.testing.federations import vertical_cases
    >>> check_values(vertical_cases()[0], rounds=1) < 1e-12
    True
    """
    plain, copying = (
        Simulator(
            case.data, case.task, case.algorithm, seed=case.seed, codecs=case.codecs, precision=torch.float64, threads=1
        )
        for _ in range(2)
    )
    random, state = Random(seed), cast(Any, copying.state)

    def empty() -> None:
        for group in state.groups if isinstance(state, VerticalState) else ():
            if random.random() < _EMPTIED:
                group.passes.clear()

    name = "fed" if isinstance(state, VerticalState) else "federation"
    setattr(state, name, Copying(getattr(state, name), empty))
    for engine in (plain, copying):
        for _ in range(rounds):
            engine.run_round()
    pairs = zip(plain.weights, copying.weights, strict=True)
    worst = max(float((mine - wanted).abs().max()) for mine, wanted in pairs)
    assert worst <= tolerance, f"{case.name}: with copied values a block is {worst:.1e} off"
    assert plain.meter == copying.meter, f"{case.name}: with copied values other bytes are counted"
    return worst
