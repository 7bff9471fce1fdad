"""Metered bytes are the bytes of the same messages really encoded, for every algorithm."""

from __future__ import annotations

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from crosshatch.algorithms.central import Central
from crosshatch.algorithms.fedavg import FedAvg
from crosshatch.algorithms.fedbcd import FedBCD
from crosshatch.algorithms.fedsgd import FedSGD
from crosshatch.algorithms.tdcd import TDCD
from tests.equivalence.federations import Case, cases
from tests.simulator.listen import Heard, listen, metered, really_encoded
from tests.simulator.small import small

precisions = st.sampled_from((torch.float32, torch.float64))
LINEAR = ("linear", "mlp")


def assert_metered(heard: Heard) -> None:
    """Sums of lengths and numbers of messages agree: all together, by link and by exchange."""
    encoded = really_encoded(heard.messages)
    assert metered(heard.simulator) == encoded
    assert heard.simulator.meter.messages == len(heard.messages)
    assert heard.simulator.meter.bytes == sum(size for size, _ in encoded["links"].values())
    assert heard.simulator.meter.bytes == sum(size for size, _ in encoded["exchanges"].values())


@settings(max_examples=15)
@given(
    case=cases(kinds=LINEAR),
    held=st.booleans(),
    batches=st.sampled_from(("reused", "fresh")),
    derivatives=st.sampled_from(("each_step", "each_round")),
    dtype=precisions,
)
def test_tdcd(case: Case, held: bool, batches: str, derivatives: str, dtype: torch.dtype) -> None:
    case = case.with_labels(case.label_holder if held else None)
    algorithm = TDCD(**case.settings, batches=batches, derivatives=derivatives)  # type: ignore[arg-type]
    assert_metered(listen(case, algorithm, rounds=2, precision=dtype))


@settings(max_examples=15)
@given(
    case=cases(clients=(1, 1), kinds=LINEAR),
    held=st.booleans(),
    order=st.sampled_from(("parallel", "sequential")),
    dtype=precisions,
)
def test_fedbcd(case: Case, held: bool, order: str, dtype: torch.dtype) -> None:
    case = case.with_labels(case.label_holder if held else None)
    algorithm = FedBCD(**case.settings, order=order)  # type: ignore[arg-type]
    assert_metered(listen(case, algorithm, rounds=2, precision=dtype))


@settings(max_examples=10)
@given(case=cases(clients=(1, 1), kinds=LINEAR), held=st.booleans(), dtype=precisions)
def test_fedsgd(case: Case, held: bool, dtype: torch.dtype) -> None:
    case = case.with_labels(case.label_holder if held else None)
    algorithm = FedSGD(step_size=case.step_size, batch_size=case.batch_size)
    assert_metered(listen(case, algorithm, rounds=2, precision=dtype))


@settings(max_examples=10)
@given(case=cases(silos=(1, 1), kinds=LINEAR), batches=st.sampled_from(("reused", "fresh")), dtype=precisions)
def test_fedavg(case: Case, batches: str, dtype: torch.dtype) -> None:
    heard = listen(case, FedAvg(**case.settings, batches=batches), rounds=2, precision=dtype)  # type: ignore[arg-type]
    assert_metered(heard)
    assert set(heard.simulator.meter.exchanges) == {"broadcast", "average"}


@settings(max_examples=10)
@given(case=cases(kinds=LINEAR), held=st.booleans())
def test_central_sends_nothing(case: Case, held: bool) -> None:
    case = case.with_labels(case.label_holder if held else None)
    heard = listen(case, Central(**case.settings), rounds=2)
    assert heard.messages == []
    assert heard.simulator.meter.bytes == heard.simulator.meter.messages == 0


@settings(max_examples=10)
@given(
    case=cases(silos=(1, 1), kinds=LINEAR), held=st.booleans(), derivatives=st.sampled_from(("each_step", "each_round"))
)
def test_one_silo_has_nobody_to_share_with(case: Case, held: bool, derivatives: str) -> None:
    case = case.with_labels("silo0" if held else None)
    heard = listen(case, TDCD(**case.settings, derivatives=derivatives), rounds=2)  # type: ignore[arg-type]
    assert {message[3] for message in heard.messages} <= {"broadcast", "average"}


def test_late_rounds_have_longer_headers() -> None:
    """Round 128 takes a byte more than round 127."""
    case = small(clients=(1, 1))
    heard = listen(case, FedSGD(step_size=case.step_size), rounds=130)
    assert_metered(heard)
    before = listen(case, FedSGD(step_size=case.step_size), rounds=128).simulator.meter.bytes
    assert heard.simulator.meter.bytes == before // 128 * 130 + 2 * 2 * 1


@settings(max_examples=15)
@given(case=cases(kinds=LINEAR), held=st.booleans(), batches=st.sampled_from(("reused", "fresh")))
def test_counted_at_once_or_later(case: Case, held: bool, batches: str) -> None:
    """Who listens has every message counted as it is sent; otherwise they wait until somebody reads the meter."""
    case = case.with_labels(case.label_holder if held else None)
    algorithm = TDCD(**case.settings, batches=batches)  # type: ignore[arg-type]
    at_once = listen(case, algorithm, rounds=20, batches=None).simulator
    later = case.simulate(algorithm, rounds=20, batches=None)
    assert (later.meter, later.seconds) == (at_once.meter, at_once.seconds)
