"""What is in the folders of processes: a party's own things, and the text that all must have in common."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
import torch

from crosshatch.errors import RunError
from crosshatch.parties.evaluation.agent_evaluation import AgentEvaluation
from crosshatch.parties.evaluation.with_evaluation import EvaluationPlan, judging_party
from crosshatch.parties.line import Name
from crosshatch.parties.parties_of import parties_of
from crosshatch.parties.party import Party
from crosshatch.parties.recovery.packed_state import StoredState, pack
from crosshatch.parties.roles.client_role import ClientRole
from crosshatch.parties.roles.hub_role import HubRole
from crosshatch.runs.config import read_config
from crosshatch.runs.evaluating.own_test_rows import Briefing, hold_out
from crosshatch.runs.launching.child import parties_in
from crosshatch.runs.launching.own_rows import read_share
from crosshatch.runs.launching.party_processes import Children
from crosshatch.runs.launching.seating import houses_of, seat
from crosshatch.runs.launching.text_files import what_is_agreed
from crosshatch.runs.prepare import prepare
from tests.runs.launching.kinds import config_of

BLOCK = """
import torch

loaded = True

class Net(torch.nn.Linear):
    def __init__(self, input_shape, outputs):
        super().__init__(input_shape[0], outputs)
"""


def seated(folder: Path, name: str, *changes: str, rounds: int = 3) -> dict[Name, Party]:
    """The folders of a kind of federation, and the parties that they are of."""
    prepared = prepare(config_of(folder, name, *changes), folder=None)
    config, simulator = prepared.config, prepared.simulator
    data, plan = simulator.data, EvaluationPlan.of(simulator.data, 5, rounds)
    parties = parties_of(
        data, simulator.task, simulator.algorithm, seed=config.run.seed, codecs=config.codecs, evaluation=plan
    )
    seat(folder / "parties", parties, data, simulator.task, config, rounds=rounds, keep=(rounds,))
    houses, judge = houses_of(parties), parties[judging_party(parties, data)]
    hold_out(folder / "parties", houses, plan, folder / "parties" / judge.house / judge.name, Briefing())
    return parties


def packed(party: Party) -> bytes:
    """Its state before the first round, but for what the judge among them has."""
    state = {name: one for name, one in party.state().items() if name != "evaluation"}
    return pack(StoredState("0badcafe", party.name, 0, state))


def held_rows(party: Party) -> list[torch.Tensor | None]:
    """What it has of the rows held out: their numbers or owners, features and labels."""
    assert party.evaluation is not None
    fed = party.evaluation.fed
    if isinstance(fed, AgentEvaluation):
        return [fed.held, fed.labels, torch.tensor(fed.validation)]
    held = getattr(fed, "held", None)
    if isinstance(held, ClientRole):
        return [torch.as_tensor(held.client.ids), held.client.x, held.client.y]
    return [torch.as_tensor(held.keeper.roster.owners)] if isinstance(held, HubRole) else []


@pytest.mark.parametrize(
    "name",
    [
        "TDCD, held, each step",
        "HSGD, a fraction of 0.5",
        "four tiers",
        "MTCD, small networks",
        "DCPA",
        "transfer",
        "sample weights",
    ],
)
def test_parties_from_their_folders_hold_what_they_held(name: str, tmp_path: Path) -> None:
    parties = seated(tmp_path, name)
    for house, members in houses_of(parties).items():
        found = parties_in(tmp_path / "parties" / house, [party.name for party in members])
        for party in members:
            other = found[party.name]
            assert other.role.beforehand == party.role.beforehand
            assert other.house == house
            assert packed(other) == packed(party)
            for one, two in zip(held_rows(other), held_rows(party), strict=True):
                assert (one is None) == (two is None)
                assert one is None or two is None or torch.equal(one.double(), two.double())
            if isinstance(party.role, ClientRole):
                assert isinstance(other.role, ClientRole)
                ours, theirs = party.role.client, other.role.client
                assert torch.equal(ours.x, theirs.x)
                assert (ours.ids == theirs.ids).all()
                assert (ours.y is None) == (theirs.y is None)
                assert ours.y is None or theirs.y is None or torch.equal(ours.y, theirs.y)
                assert torch.equal(ours.model.vectors.first, theirs.model.vectors.first)
            if isinstance(party.role, HubRole):
                assert isinstance(other.role, HubRole)
                assert torch.equal(party.role.keeper.vectors.first, other.role.keeper.vectors.first)
                assert (party.role.keeper.roster.owners == other.role.keeper.roster.owners).all()


def test_hubs_have_numbers_and_no_block(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(BLOCK)
    parties = seated(tmp_path, "TDCD", f"model.block={tmp_path / 'net.py'}:Net")
    homes = tmp_path / "parties"
    for house, members in houses_of(parties).items():
        share = read_share(homes / house, torch.float64)
        role = members[0].role
        assert isinstance(role, ClientRole | HubRole)
        computes = isinstance(role, ClientRole)
        assert (homes / house / "parts" / "net.py").exists() == computes
        kept = {j: sum(one.numel() for one in block.parameters()) for j, block in share.elsewhere.items()}
        size = 0 if computes else len(members[0].blocks.mine)
        assert kept == ({1 - role.silo: 0} if computes else {role.silo: size, 1 - role.silo: 0})


def test_a_changed_text_is_noticed_and_named(tmp_path: Path) -> None:
    parties = seated(tmp_path, "own parts")
    first, *others = (tmp_path / "parties" / house for house in houses_of(parties))
    mine = what_is_agreed(first, 3)
    assert all(what_is_agreed(home, 3) == mine for home in others)

    def changed(rounds: int = 3) -> set[str]:
        now = what_is_agreed(first, rounds)
        return {name for name in now if now[name] != mine[name]}

    assert changed(4) == {"federation"}
    for name, what in (("parts/mine.py", "text"), ("config.toml", "federation"), ("share.json", "federation")):
        before = (first / name).read_bytes()
        (first / name).write_bytes(before + b"\n")
        assert changed() == {what}, name
        (first / name).write_bytes(before)
    assert changed() == set()


def wait_for_the_end(children: Children) -> None:
    """What one of them ends with is raised."""
    pause = threading.Event()
    for _ in range(6000):
        children.check()
        pause.wait(0.01)


def test_a_party_with_another_text_is_not_listened_to(tmp_path: Path) -> None:
    parties = seated(tmp_path, "own parts")
    houses = list(houses_of(parties))
    text = tmp_path / "parties" / houses[0] / "parts" / "mine.py"
    text.write_text(text.read_text() + "\n# a line more\n")
    said: list[str] = []
    children = Children(tmp_path / "parties", houses, said.append)
    children.start()
    try:
        with pytest.raises(RunError, match=r"do not fit: text is \w+ at \S+, \w+ at "):
            wait_for_the_end(children)
    finally:
        children.stop()


def test_a_process_that_cannot_start_ends_the_run_with_its_message(tmp_path: Path) -> None:
    houses, said = list(houses_of(seated(tmp_path, "own parts"))), list[str]()
    (tmp_path / "parties" / houses[1] / "share.json").unlink()
    children = Children(tmp_path / "parties", houses, said.append)
    children.start()
    try:
        with pytest.raises(RunError, match=f"{houses[1]} cannot start: FileNotFoundError: .*share.json"):
            wait_for_the_end(children)
    finally:
        children.stop()
    assert said == []


def test_class_weights_are_told_as_numbers(tmp_path: Path) -> None:
    seated(tmp_path, "class weights")
    assert config_of(tmp_path, "class weights").model.class_weights == "balanced"
    weights = read_config(tmp_path / "parties" / "hub-0-0" / "config.toml").model.class_weights
    assert isinstance(weights, tuple)
    assert weights[0] > 1 > weights[1]  # fewer tumours are malignant, class 0
