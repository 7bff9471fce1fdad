"""Who sends what to whom, by hand and by the papers' closed forms."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crosshatch.algorithms.fedbcd import FedBCD
from crosshatch.algorithms.fedsgd import FedSGD
from crosshatch.algorithms.tdcd import TDCD
from tests.equivalence.federations import ROUNDS, Case, cases
from tests.simulator.listen import listen
from tests.simulator.small import small

LINEAR = ("linear", "mlp")


@settings(max_examples=15)
@given(case=cases(clients=(1, 1), kinds=LINEAR), held=st.booleans())
def test_fedbcd_in_parallel(case: Case, held: bool) -> None:
    """FedBCD section 4: 2(K - 1) messages a round where form (2) holds, K(K - 1) otherwise."""
    silos = len(case.data.silos)
    case = case.with_labels(case.label_holder if held else None)
    wanted = ROUNDS * (2 * (silos - 1) if held else silos * (silos - 1))
    for algorithm in (FedBCD(**case.settings), FedSGD(step_size=case.step_size, batch_size=case.batch_size)):
        assert case.simulate(algorithm).meter.messages == wanted


@settings(max_examples=15)
@given(case=cases(clients=(1, 1), silos=(2, 4), kinds=LINEAR))
def test_fedbcd_in_turn_with_shared_labels(case: Case) -> None:
    """Before its turn a party gets the newest of every other: K turns of K - 1 messages."""
    silos = len(case.data.silos)
    heard = listen(case, FedBCD(**case.settings, order="sequential"), rounds=1)
    assert len(heard.messages) == silos * (silos - 1)
    assert set(heard.by_ends.values()) == {1}


@pytest.mark.parametrize("silos", [2, 3, 4])
def test_fedbcd_in_turn_with_held_labels(silos: int) -> None:
    """First everybody's outputs to the holder, then one answer before a turn and one output after it.

    The last party's output after its turn is of no use: the next round has another batch.
    """
    last = "abcd"[silos - 1]
    heard = listen(
        small(clients=(1,) * silos, label_silo=last),
        FedBCD(2, 0.1, order="sequential"),
        rounds=1,
    )
    others = "abcd"[: silos - 1]
    assert heard.by_ends == {**{(o, last): 2 for o in others}, **{(last, o): 1 for o in others}}


def _parties_at_work(case: Case, ids: list[int]) -> list[set[int]]:
    return [{int(k) for k in silo.owners[ids]} for silo in case.data.silos]


@settings(max_examples=15)
@given(case=cases(silos=(1, 4), kinds=LINEAR), batches=st.sampled_from(("reused", "fresh")))
def test_tdcd_counts(case: Case, batches: str) -> None:
    """A client at work: block down, embeddings up, the others' down, block up. Hubs: one message to each other."""
    heard = listen(case, TDCD(**case.settings, batches=batches), rounds=ROUNDS)  # type: ignore[arg-type]
    silos = len(case.data.silos)
    wanted_hubs = wanted_clients = 0
    for r in range(ROUNDS):
        ids = {int(i) for q in range(case.steps) for i in case.ids(r, q if batches == "fresh" else 0)}
        wanted_hubs += silos * (silos - 1)
        wanted_clients += sum(len(at_work) for at_work in _parties_at_work(case, sorted(ids)))
    links = heard.simulator.meter.links
    for direction in ("up", "down"):
        assert links[f"client-hub {direction}"][1] == wanted_clients * (2 if silos > 1 else 1)
    assert links.get("hub-hub across", [0, 0])[1] == wanted_hubs


@settings(max_examples=15)
@given(
    case=cases(kinds=LINEAR),
    held=st.booleans(),
    batches=st.sampled_from(("reused", "fresh")),
    derivatives=st.sampled_from(("each_step", "each_round")),
)
def test_clients_without_samples_send_and_receive_nothing(
    case: Case, held: bool, batches: str, derivatives: str
) -> None:
    case = case.with_labels(case.label_holder if held else None)
    algorithm = TDCD(**case.settings, batches=batches, derivatives=derivatives)  # type: ignore[arg-type]
    heard = listen(case, algorithm, rounds=ROUNDS)
    for sender, receiver, r, exchange, step, _ in heard.messages:
        for name in (sender, receiver):
            if "/" in name:
                silo = next(s for s in case.data.silos if s.name == name.split("/")[0])
                inner = step > 0
                steps = [step] if inner else range(case.steps)
                ids = {int(i) for q in steps for i in case.ids(r, q if batches == "fresh" else 0)}
                assert int(name.split("/")[1]) in silo.owners[sorted(ids)], f"{exchange} in round {r}, step {step}"


def test_tdcd_shapes_by_hand() -> None:
    """Silo a: samples 0 2 4 and 1 3 5 at two clients; silo b: 0 3, 1 4, 2 5 at three; the batch leaves 5 and 2 out."""
    case = small(clients=(2, 3), batches=[[[0, 1, 3, 4]] * 2] * 3)
    heard = listen(case, TDCD(**case.settings), rounds=1)
    assert heard.shapes("a", "a/0", "broadcast") == [((3,),)]  # two columns and a bias
    assert heard.shapes("a/0", "a", "share") == [((2, 1),)]  # samples 0 and 4
    assert heard.shapes("b/2", "b", "share") == []  # held 2 and 5
    assert heard.shapes("a", "b", "share") == heard.shapes("b", "a", "share") == [((4, 1),)]
    assert heard.shapes("b", "b/1", "share") == [((2, 1),)]
    assert heard.shapes("b/1", "b", "average") == [((3,),)]
    assert heard.simulator.meter.messages == 4 * (2 + 2) + 2


def test_a_sample_in_several_batches_of_a_round_is_sent_for_each() -> None:
    """ICASSP: the embeddings of Q mini-batches are exchanged up front."""
    case = small(clients=(2, 3), batches=[[[0, 1], [0, 2]]] * 3)
    heard = listen(case, TDCD(**case.settings, batches="fresh"), rounds=1)
    assert heard.shapes("a/0", "a", "share") == [((3, 1),)]  # 0, 0, 2
    assert heard.shapes("a/1", "a", "share") == [((1, 1),)]
    assert heard.shapes("a", "b", "share") == [((4, 1),)]


def test_the_head_travels_with_the_embeddings() -> None:
    """Widths 1, 2, 3 and a linear head of 7 numbers at silo b: it goes to the others, not back."""
    case = small(clients=(1, 2, 1), holder=1)
    heard = listen(case, TDCD(**case.settings), rounds=1)
    head = (7,)
    assert heard.shapes("b", "b/0", "broadcast") == [((2 * 3 + 7,),)]
    assert heard.shapes("b", "a", "share") == heard.shapes("b", "c", "share") == [((6, 2), head)]
    assert heard.shapes("a", "b", "share") == [((6, 1),)]
    assert heard.shapes("a", "a/0", "share") == [((6, 5), head)]
    assert heard.shapes("b", "b/1", "share") == [((3, 4),)]
    assert heard.shapes("b/1", "b", "average") == [((2 * 3 + 7,),)]


@pytest.mark.parametrize("steps", [1, 3])
def test_labels_held_by_hand(steps: int) -> None:
    """Remark 2 with two silos: every step embeddings to the holder's clients, derivatives back to the others'."""
    case = small(clients=(2, 3), steps=steps, label_silo="b")
    heard = listen(case, TDCD(**case.settings), rounds=1)
    for q in range(steps):
        assert heard.shapes("a/1", "a", "share", q) == [((3, 1),)]
        assert heard.shapes("a", "b", "share", q) == [((6, 1),)]
        assert heard.shapes("b", "b/2", "share", q) == [((2, 1),)]
        assert heard.shapes("b/2", "b", "derivatives", q) == [((2, 1),)]
        assert heard.shapes("b", "a", "derivatives", q) == [((6, 1),)]
        assert heard.shapes("a", "a/1", "derivatives", q) == [((3, 1),)]
    blocks = 2 * (2 + 3)
    assert heard.simulator.meter.messages == blocks + steps * (2 + 1 + 3 + 3 + 1 + 2)
    per_round = listen(case, TDCD(**case.settings, derivatives="each_round"), rounds=1)
    assert per_round.simulator.meter.messages == blocks + 12


def _numbers(shapes: list[tuple[tuple[int, ...], ...]]) -> int:
    return sum(math.prod(shape) for message in shapes for shape in message)


def test_derivatives_around_stale_embeddings_differ_from_silo_to_silo() -> None:
    """Three silos, a sum: in step 1 the derivative for a (new a, old b) is not the one for b (old a, new b)."""
    case = small(clients=(1, 1, 1), steps=2, label_silo="c")
    heard = listen(case, TDCD(**case.settings), rounds=1)
    assert _numbers(heard.shapes("c/0", "c", "derivatives", 0)) == 6
    assert _numbers(heard.shapes("c/0", "c", "derivatives", 1)) == 12


def test_the_holders_clients_get_what_they_need_for_them() -> None:
    case = small(clients=(1, 1, 1), steps=2, label_silo="c")
    heard = listen(case, TDCD(**case.settings), rounds=1)
    assert _numbers(heard.shapes("c", "c/0", "share", 1)) == 12
