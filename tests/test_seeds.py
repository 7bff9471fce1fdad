"""Seeds: equal names give equal numbers, different names do not."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from crosshatch.errors import ConfigError
from crosshatch.seeds import generator, torch_seed


def draw(seed: int, purpose: str, *numbers: int) -> tuple[int, ...]:
    return tuple(generator(seed, purpose, *numbers).integers(2**62, size=4).tolist())


def test_equal_names_agree() -> None:
    assert draw(3, "batch", 1, 2) == draw(3, "batch", 1, 2)
    assert torch_seed(3, "initial", 1) == torch_seed(3, "initial", 1)


def test_different_names_differ() -> None:
    names = list(itertools.product((0, 1, 2**32, 2**63), ("batch", "owners", "initial"), (0, 1, 256), (0, 1, 256)))
    assert len({draw(seed, purpose, a, b) for seed, purpose, a, b in names}) == len(names)
    assert draw(0, "batch", 1, 0) != draw(1, "batch", 0, 0)


def test_the_numbers_of_a_purpose_are_fixed_for_all_time() -> None:
    """A change here would change every run's batches."""
    assert generator(7, "batch", 0, 0).integers(1000, size=5).tolist() == [198, 758, 142, 861, 50]


def test_torch_seeds_fit_torch() -> None:
    assert all(0 <= torch_seed(seed, "initial", j) < 2**63 for seed in range(5) for j in range(5))


def test_a_number_more_is_another_name() -> None:
    assert draw(7, "batch") != draw(7, "batch", 0)


@pytest.mark.parametrize("seed", [-1, 1.5, True, "1", None])
def test_a_seed_is_a_whole_number_from_0_on(seed: Any) -> None:
    reason = f"^seed = {seed!r}: a seed is a whole number from 0 on$"
    with pytest.raises(ConfigError, match=reason):
        generator(seed, "batch")
    with pytest.raises(ConfigError, match=reason):
        torch_seed(seed, "batch")
