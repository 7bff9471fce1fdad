"""Network models by closed form."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosshatch.errors import ConfigError
from crosshatch.network import BandwidthNetwork, Clocks, ConstantNetwork, Direction, Link

times = st.floats(0, 1e6)
directions: st.SearchStrategy[Direction] = st.sampled_from(["up", "down"])


@given(times, times, directions, st.lists(st.integers(0, 10**12), min_size=1, max_size=5))
def test_constant_times_do_not_depend_on_size(comm: float, comp: float, direction: Direction, sizes: list[int]) -> None:
    network = ConstantNetwork(t_comm=comm, t_comp=comp)
    clients = np.arange(len(sizes))
    found = network.transfer("client-hub", direction, np.array(sizes), "a", clients)
    assert found.tolist() == [comm / 2] * len(sizes)
    assert network.transfer("hub-hub", "across", np.array([1]), "a", None).tolist() == [comm]
    assert network.local_step("a", clients).tolist() == [comp] * len(sizes)


def test_slow_parties_are_slow_in_everything() -> None:
    network = ConstantNetwork(t_comm=10, t_comp=1, slow={"a/3": 4.0, "b": 2.0})
    assert network.transfer("client-hub", "up", np.zeros(2, dtype=np.int64), "a", np.array([1, 3])).tolist() == [5, 20]
    assert network.local_step("a", np.array([3, 1])).tolist() == [4, 1]
    assert network.local_step("b", np.array([3, 1])).tolist() == [1, 1]  # the hub is slow, not its clients
    assert network.transfer("hub-hub", "across", np.array([9]), "b", None).tolist() == [20]
    assert network.transfer("hub-hub", "across", np.array([9]), "a", None).tolist() == [10]


@given(
    st.floats(0, 10), st.floats(0.1, 1e4), st.floats(0.1, 1e4), st.lists(st.integers(0, 10**9), min_size=1, max_size=4)
)
def test_latency_plus_bits_over_bandwidth(latency: float, up: float, down: float, sizes: list[int]) -> None:
    network = BandwidthNetwork(links={"client-hub": Link(latency, up, down)})
    clients = np.arange(len(sizes))
    for direction, megabits in (("up", up), ("down", down)):
        found = network.transfer("client-hub", direction, np.array(sizes), "a", clients)  # type: ignore[arg-type]
        assert found.tolist() == pytest.approx([latency + n * 8 / (megabits * 1e6) for n in sizes])
    assert network.transfer("hub-hub", "up", np.array(sizes[:1]), "a", None).tolist() == [0]  # not named: free


def test_a_party_may_have_a_link_of_its_own() -> None:
    network = BandwidthNetwork(
        links={"client-hub": Link(1.0, 8.0, 80.0), "hub-hub": Link(0.5, 800.0, 800.0)},
        parties={"a/7": Link(2.0, 0.8, 8.0), "b": Link(3.0, 8.0, 8.0)},
        step_seconds=0.1,
        slow={"a/7": 3.0},
    )
    million = np.full(3, 10**6)
    clients = np.array([2, 7, 9])
    assert network.transfer("client-hub", "up", million, "a", clients).tolist() == pytest.approx([2, 12, 2])
    assert network.transfer("client-hub", "down", million, "a", clients).tolist() == pytest.approx([1.1, 3, 1.1])
    assert network.transfer("client-hub", "up", million, "b", clients).tolist() == pytest.approx([2, 2, 2])
    assert network.transfer("hub-hub", "across", million[:1], "b", None).tolist() == pytest.approx([4])
    assert network.local_step("a", clients).tolist() == pytest.approx([0.1, 0.3, 0.1])


def test_a_party_that_is_not_at_work_changes_nothing() -> None:
    network = ConstantNetwork(t_comm=10, t_comp=1, slow={"a/3": 1000.0, "c": 1000.0})
    assert network.local_step("a", np.array([0, 1, 2])).tolist() == [1, 1, 1]


def test_the_last_hub_has_the_time() -> None:
    assert Clocks(np.array([1.0, 5.0, 2.0])).now == 5.0


def test_impossible_networks_are_refused() -> None:
    with pytest.raises(ConfigError, match="t_comm = -1"):
        ConstantNetwork(t_comm=-1)
    with pytest.raises(ConfigError, match="t_comp = nan"):
        ConstantNetwork(t_comp=float("nan"))
    with pytest.raises(ConfigError, match=r"t_comp = 1e\+300: must be at most 1e\+12"):
        ConstantNetwork(t_comp=1e300)
    with pytest.raises(ConfigError, match=r"'a' down = 1e-200: must be at least 1e-12 megabits per second"):
        BandwidthNetwork(parties={"a": Link(down=1e-200)})
    with pytest.raises(ConfigError, match="a/1 = -2"):
        ConstantNetwork(slow={"a/1": -2})
    with pytest.raises(ConfigError, match="'hub-client': the kinds of link are client-hub"):
        BandwidthNetwork(links={"hub-client": Link()})
    with pytest.raises(ConfigError, match="'a' up = 0"):
        BandwidthNetwork(parties={"a": Link(up=0)})
    with pytest.raises(ConfigError, match="latency = -1"):
        BandwidthNetwork(links={"hub-hub": Link(latency=-1)})
    with pytest.raises(ConfigError, match="step_seconds = -1"):
        BandwidthNetwork(step_seconds=-1)


@pytest.mark.parametrize("name", ["a/x", "a/"])
def test_a_client_that_is_no_number_is_refused_at_the_start(name: str) -> None:
    with pytest.raises(ConfigError):
        ConstantNetwork(slow={name: 2.0}).local_step("a", np.array([0]))


def test_silo_names_may_hold_a_slash() -> None:
    assert ConstantNetwork(t_comp=1, slow={"a/b/0": 9.0}).local_step("a", np.array([0])).tolist() == [1]


def test_the_key_to_blame_is_named() -> None:
    with pytest.raises(ConfigError, match=r"^network.slow.bank = -1"):
        ConstantNetwork(slow={"bank": -1.0})
    with pytest.raises(ConfigError, match=r"^network.slow.bank = -1"):
        BandwidthNetwork(slow={"bank": -1.0})
    with pytest.raises(ConfigError, match=r"^network.parties 'bank' up = 0"):
        BandwidthNetwork(parties={"bank": Link(up=0.0)})
    with pytest.raises(ConfigError, match=r"^network.links 'hub-hub' latency = -1"):
        BandwidthNetwork(links={"hub-hub": Link(latency=-1.0)})
