"""Walks of tokens: drawn from the seed for every token by itself, each neighbour as likely as the others."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

from crosshatch.protocol.walks import Ids, SeededWalk

AGENTS, HOPS = 6, 600  # over two of the pieces in which hops are drawn


def walked(tokens: int, *, stay: bool = False, seed: int = 4) -> Ids:
    """Where each token is before every hop, (hops, tokens): all begin at agent 0 of a complete graph."""
    walk, at = SeededWalk(nx.complete_graph(AGENTS), seed), np.zeros(tokens, dtype=np.int64)
    visits = []
    for hop in range(HOPS):
        visits.append(at)
        at = walk.next(at, hop, stay=stay)
    return np.array(visits)


@pytest.mark.parametrize("stay", [False, True])
def test_tokens_go_their_own_ways(stay: bool) -> None:
    """Two that walk independently meet again in every sixth hop; those that share a walk never part."""
    visits = walked(3, stay=stay)
    for one, other in ((0, 1), (0, 2), (1, 2)):
        together = float((visits[:, one] == visits[:, other]).mean())
        assert abs(together - 1 / AGENTS) < 4 * (1 / AGENTS / HOPS) ** 0.5


def test_a_walk_does_not_depend_on_the_other_tokens() -> None:
    alone, among = walked(1), walked(3)
    assert np.array_equal(alone[:, 0], among[:, 0])
    assert not np.array_equal(alone, walked(1, seed=5))


@pytest.mark.parametrize("stay", [False, True])
def test_every_neighbour_is_as_likely(stay: bool) -> None:
    visits = walked(2, stay=stay)
    moves = np.diff(visits, axis=0) % AGENTS
    counts = np.bincount(moves.reshape(-1), minlength=AGENTS)
    assert (counts[0] > 0) == stay
    choices = AGENTS if stay else AGENTS - 1
    expected = moves.size / choices
    assert np.abs(counts[0 if stay else 1 :] - expected).max() < 5 * expected**0.5
