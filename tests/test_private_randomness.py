"""Private randomness: the same after a crash, another one for whatever else a party may cover."""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256, shake_256
from itertools import combinations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from crosshatch.errors import RunError
from crosshatch.private_randomness import Covering, PrivateSeed

SEED = PrivateSeed("0badcafe", bytes(range(32)))
MESSAGE = Covering("hub-0", (3, "average", 0), (torch.tensor([1.0, 2.0]),), b"asked")


def test_equals_the_hash_written_out() -> None:
    numbers = sha256(b"torch.float32 (2,);" + np.array([1.0, 2.0], dtype="<f4").tobytes()).digest()
    pieces = [
        bytes(range(32)), b"mask", b"0badcafe", b"hub-0", b"average",
        (3).to_bytes(8, "little"), bytes(8), (20).to_bytes(8, "little"), numbers, sha256(b"asked").digest(),
    ]  # fmt: skip
    wanted = shake_256(b"".join(len(one).to_bytes(8, "little") + one for one in pieces)).digest(20)
    assert SEED.draw("mask", MESSAGE, 20) == wanted


def test_whatever_differs_draws_something_else() -> None:
    same_bits = torch.tensor([1.0, 2.0]).view(torch.int32)
    others = [
        SEED.draw("mask", MESSAGE, 32),
        SEED.draw("noise", MESSAGE, 32),
        SEED.draw("mask", MESSAGE, 33)[:32],
        PrivateSeed("0badcaff", SEED.secret).draw("mask", MESSAGE, 32),
        PrivateSeed("0badcafe", bytes(32)).draw("mask", MESSAGE, 32),
        *(
            SEED.draw("mask", replace(MESSAGE, **change), 32)
            for change in (
                {"to": "hub-1"},
                {"key": (4, "average", 0)},
                {"key": (3, "average", 1)},
                {"key": (3, "share", 0)},
                {"numbers": (torch.tensor([1.0, 3.0]),)},
                {"numbers": (torch.tensor([1.0, 2.0]).double(),)},
                {"numbers": (torch.tensor([[1.0, 2.0]]),)},
                {"numbers": (torch.tensor([1.0]), torch.tensor([2.0]))},
                {"numbers": (same_bits,)},
                {"answers": b"asked again"},
                {"answers": b""},
            )
        ),
    ]
    assert all(one != other for one, other in combinations(others, 2))


@given(st.lists(st.tuples(st.text(), st.text()), min_size=2, max_size=2, unique=True))
def test_names_are_not_run_together(pairs: list[tuple[str, str]]) -> None:
    drawn = [SEED.draw(purpose, replace(MESSAGE, to=to), 32) for purpose, to in pairs]
    assert drawn[0] != drawn[1]


def masked(state: Tensor, seed: PrivateSeed, told: Tensor) -> tuple[Tensor, bytes]:
    """A round of somebody who moves by what it was told and sends the outcome covered by noise: numbers and cover."""
    moved = state + told
    message = Covering("hub-0", (7, "average", 0), (moved,), told.numpy().tobytes())
    return moved, seed.draw("mask", message, 64)


def test_set_back_and_told_something_else_it_covers_with_something_else() -> None:
    """And told the same, with the same: the round that is run again says what it said before."""
    stored, seed = torch.tensor([1.0, -1.0]), PrivateSeed.fresh("0badcafe")
    before = masked(stored, seed, torch.tensor([0.5, 0.5]))
    again = masked(stored.clone(), PrivateSeed(seed.run, seed.secret), torch.tensor([0.5, 0.5]))
    assert torch.equal(before[0], again[0])
    assert before[1] == again[1]
    other = masked(stored, seed, torch.tensor([0.5, 0.25]))
    assert before[1] != other[1]
    # The same numbers as an answer to another message: nobody learns that they are the same.
    apart = masked(torch.tensor([1.0, -0.75]), seed, torch.tensor([0.5, 0.25]))
    assert torch.equal(apart[0], before[0])
    assert apart[1] != before[1]


def test_normal_numbers_are_normal() -> None:
    drawn = SEED.normal("noise", MESSAGE, 100_001)
    assert drawn.shape == (100_001,)
    assert np.isfinite(drawn).all()
    sorted_, places = np.sort(drawn), (np.arange(100_001) + 0.5) / 100_001
    below = 0.5 * (1 + torch.erf(torch.from_numpy(sorted_) / 2**0.5).numpy())
    assert np.abs(below - places).max() < 1.95 / 100_001**0.5  # Kolmogorov and Smirnov, one in a thousand
    halves = np.corrcoef(drawn[:50_000], drawn[50_001:])[0, 1]  # the two of a pair
    assert abs(halves) < 4 / 50_000**0.5


def test_secrets_are_new_hidden_and_whole() -> None:
    one, other = PrivateSeed.fresh("0badcafe"), PrivateSeed.fresh("0badcafe")
    assert one.secret != other.secret
    assert len(one.secret) == 32
    assert repr(one) == "PrivateSeed(run='0badcafe')"
    with pytest.raises(RunError, match="31 bytes instead of 32"):
        PrivateSeed("0badcafe", bytes(31))
