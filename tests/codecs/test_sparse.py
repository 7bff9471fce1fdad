"""Top-k keeps the largest magnitudes; random-k draws what both ends know."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from crosshatch.codecs import Draw, RandomK, TopK
from crosshatch.errors import ConfigError
from tests.codecs import naive

DRAW = Draw(7, "share", (3, 0))


@given(values=st.lists(st.floats(-100, 100, width=32), min_size=1, max_size=60), data=st.data())
def test_top_k_against_a_sort(values: list[float], data: st.DataObject) -> None:
    k = data.draw(st.integers(1, len(values)))
    arrived = TopK(k=k).roundtrip(torch.tensor(values, dtype=torch.float32)).tolist()
    assert arrived == naive.top_k(values, k)


@given(values=st.lists(st.sampled_from([-2.0, -1.0, 0.0, 1.0, 2.0]), min_size=2, max_size=60), data=st.data())
def test_ties_go_to_the_first(values: list[float], data: st.DataObject) -> None:
    k = data.draw(st.integers(1, len(values)))
    assert TopK(k=k).roundtrip(torch.tensor(values)).tolist() == naive.top_k(values, k)
    rows = torch.tensor([values, values[::-1]])
    each = TopK(k=k).roundtrip_each(rows, np.array([1, 1])).tolist()
    assert each == [naive.top_k(values, k), naive.top_k(values[::-1], k)]


@pytest.mark.parametrize("fraction", [0.001, 0.01, 0.25, 0.9])
def test_top_k_against_torch(fraction: float) -> None:
    x = torch.randn(200, 40, generator=torch.Generator().manual_seed(0))
    arrived = TopK(fraction).roundtrip(x).reshape(-1)
    k = int(fraction * x.numel())
    at = torch.topk(x.abs().reshape(-1), k).indices
    expected = torch.zeros(x.numel()).index_copy_(0, at, x.reshape(-1)[at])
    assert torch.equal(arrived, expected)
    gone = x.reshape(-1)[arrived == 0].abs().max()
    assert gone <= arrived[arrived != 0].abs().min(), "nothing that was dropped is larger than what was kept"


@pytest.mark.parametrize(
    ("fraction", "n", "k"), [(0.01, 99, 1), (0.01, 199, 1), (0.29, 100, 29), (0.1, 30, 3), (1.0, 7, 7), (1e-9, 5, 1)]
)
def test_how_many_stay(fraction: float, n: int, k: int) -> None:
    x = torch.arange(1.0, n + 1)
    assert int((TopK(fraction).roundtrip(x) != 0).sum()) == k
    assert int((RandomK(fraction).roundtrip(x, draw=DRAW) != 0).sum()) == k


def test_size_by_hand() -> None:
    """60,000 x 16 embeddings, 1%: 9,600 values, and positions of 6 low bits and a map of 9,600 + 959,999 // 64 bits."""
    shape = (60_000, 16)
    assert TopK(0.01).size(shape, torch.float32) == 9_600 * 4 + 9_600 * 6 // 8 + -(-(9_600 + 959_999 // 64) // 8)
    assert TopK(1.0).size(shape, torch.float32) == 4 * 960_000
    assert RandomK(0.01).size(shape, torch.float32) == 9_600 * 4


def test_bytes_by_hand() -> None:
    """Eight numbers, two kept: a map of eight bits, then the two values."""
    x = torch.tensor([[0.1, -4.0, 0.2, 2.0], [0.0, 1.0, -1.0, 0.3]])
    assert TopK(0.25).encode(x).hex() == "0a" + "000080c0" + "00000040"


def test_random_k_differs_by_round_sender_and_seed_and_repeats() -> None:
    x, codec = torch.arange(1.0, 201.0), RandomK(0.1)
    draws = [DRAW, Draw(8, "share", (3, 0)), Draw(7, "average", (3, 0)), Draw(7, "share", (4, 0)), DRAW.of(5)]
    arrived = [tuple(codec.roundtrip(x, draw=draw).tolist()) for draw in draws]
    assert len(set(arrived)) == len(draws)
    assert tuple(codec.roundtrip(x, draw=DRAW).tolist()) == arrived[0]


def test_random_k_keeps_values_and_is_unbiased_on_average() -> None:
    x = torch.linspace(-1, 1, 40, dtype=torch.float64)
    plain, scaled = RandomK(0.25), RandomK(0.25, unbiased=True)
    one = plain.roundtrip(x, draw=DRAW)
    assert torch.equal(one[one != 0], x[one != 0])
    assert torch.equal(scaled.roundtrip(x, draw=DRAW), 4 * one)
    draws = [DRAW.of(i) for i in range(4000)]
    mean = scaled.roundtrip_each(x.expand(4000, 40), np.ones(4000, np.int64), draws=draws).mean(0)
    deviation = x.abs() * (3 / 4000) ** 0.5  # of a mean of 4,000: each is 4 x with chance 1/4, else 0
    assert (((mean - x).abs() / deviation) < 4.5).all()


def test_random_k_needs_its_draw() -> None:
    with pytest.raises(ConfigError, match="give the message's draw"):
        RandomK(0.5).encode(torch.zeros(4))


@pytest.mark.parametrize("fraction", [0, 0.0, -0.1, 1.0001, float("nan"), float("inf"), True, "0.1"])
def test_bad_fractions(fraction: float) -> None:
    with pytest.raises(ConfigError, match="fraction above 0 and at most 1"):
        TopK(fraction)
    with pytest.raises(ConfigError, match="fraction above 0 and at most 1"):
        RandomK(fraction)


@pytest.mark.parametrize("k", [0, -1, 1.5, True])
def test_bad_k(k: int) -> None:
    with pytest.raises(ConfigError, match="k >= 1"):
        TopK(k=k)


def test_fraction_or_k() -> None:
    with pytest.raises(ConfigError, match="has neither: write"):
        TopK()
    with pytest.raises(ConfigError, match="has both: write"):
        TopK(0.1, k=3)
    with pytest.raises(ConfigError, match="say k="):
        TopK(100)
    with pytest.raises(ConfigError, match="unbiased is true or false"):
        RandomK(0.1, unbiased=1)  # type: ignore[arg-type]
