"""ABCD's theorem for a config: `plan` gives its step size, "auto" takes it; elsewhere plan says why not, auto tries."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from crosshatch.cli import main
from crosshatch.runs.config import Config, decode_config, read_config
from crosshatch.runs.planning.plan import make_plan
from crosshatch.runs.prepare import prepare
from crosshatch.runs.train import train
from crosshatch.schedules import Constant
from tests.support.run_configs import TABLES
from tests.support.training import lines, model

OURS = "ABCD, our theorem"


def changed(**sections: dict[str, Any]) -> Config:
    """The small config with ABCD, all samples and one client per silo."""
    tables = copy.deepcopy(TABLES) | {
        "algorithm": {"name": "abcd", "local_steps": 4, "step_size": "auto", "anticipation": "silos", "window": 1}
    }
    tables["federation"]["clients"] = 1
    for section, keys in sections.items():
        tables[section] = tables.get(section, {}) | keys
    return decode_config(tables)


def by_hand(config: Config, factor: float, l2: float) -> float:
    """1 / (s max L_k + l2) of a logistic regression with biases, by all eigenvalues."""
    largest = []
    for silo in prepare(config, folder=None).simulator.data.silos:
        x = torch.cat([silo.train, torch.ones(len(silo.train), 1)], 1).double().numpy()
        largest.append(0.25 * np.linalg.eigvalsh(x.T @ x / len(x))[-1])
    return float(1 / (factor * max(largest) + l2))


@pytest.mark.parametrize(("anticipation", "factor"), [("silos", 2), (5.0, 5)])
def test_the_step_size_is_the_theorem_s(anticipation: object, factor: float) -> None:
    config = changed(algorithm={"anticipation": anticipation}, model={"l2": 0.05})
    chosen = prepare(config, folder=None).config
    expected = by_hand(config, factor, 0.05)
    assert chosen.auto == ()
    assert isinstance(chosen.algorithm.step_size, Constant)
    assert chosen.algorithm.step_size.value == pytest.approx(expected, rel=1e-4)
    plan = make_plan(config)
    (ours,) = [judged for judged in plan.judgements if judged.theorem.name == OURS]
    assert ours.applies
    assert not ours.above
    assert ours.theorem.limit.stated == pytest.approx(2 * expected, rel=1e-4)
    assert 1 / (factor * max(ours.theorem.lipschitz) + 0.05) == pytest.approx(expected, rel=1e-4)
    (advice,) = plan.advice
    assert (advice.strategy, advice.local_steps) == ("ABCD", 4)
    assert advice.step_size == pytest.approx(expected, rel=1e-4)
    gap, rounds, eta = plan.constants.gap, 6, plan.step_size
    assert ours.bound.value == pytest.approx(gap / (rounds * eta * (1 - eta / expected / 2)), rel=1e-3)
    assert [judged.theorem.name for judged in plan.judgements if judged.applies] == [OURS]
    assert str(plan.algorithm.topology) == "V(4)"


def test_a_squared_loss_may_anticipate_less() -> None:
    regression: dict[str, dict[str, Any]] = {
        "data": {"name": "diabetes"},
        "federation": {"silos": 4},
        "evaluate": {"targets": []},
    }
    told: list[str] = []
    config = changed(**regression, algorithm={"anticipation": 2.5})
    assert isinstance(prepare(config, folder=None, tell=told.append).config.algorithm.step_size, Constant)
    assert not told
    with_l1 = changed(**regression, algorithm={"anticipation": 2.5}, model={"l1": 0.1})
    prepare(with_l1, folder=None, tell=told.append)
    assert "anticipation is 2.5 for 4 silos, the theorem has at least 4" in told[0]
    told.clear()
    half = changed(**regression, algorithm={"anticipation": "0.5 silos"})
    prepare(half, folder=None, tell=told.append)
    assert "anticipation is 2 for 4 silos, the theorem has more than 2" in told[0]


def test_an_l1_term_is_covered_up_to_twice_the_best_step_size() -> None:
    at_one = changed(model={"l1": 0.01})
    chosen = prepare(at_one, folder=None).config.algorithm.step_size
    assert isinstance(chosen, Constant)
    for share, above in ((1.0, False), (1.9, False), (2.1, True)):
        plan = make_plan(changed(model={"l1": 0.01}, algorithm={"step_size": share * chosen.value}))
        (ours,) = [judged for judged in plan.judgements if judged.theorem.name == OURS]
        assert (ours.applies, ours.above) == (True, above)
        assert np.isfinite(ours.bound.value)
        assert any("model.l1 the bound is on the squared norm of a proximal step" in line for line in plan.warnings)
        assert [judged.theorem.name for judged in plan.judgements if judged.applies] == [OURS]


def test_a_run_with_it_never_rises_and_its_config_runs_again(out: Path) -> None:
    config = changed(algorithm={"local_steps": 30}, evaluate={"every": 1})
    train(config, out=out)
    losses = [line["train_loss"] for line in lines(out)]
    assert losses == sorted(losses, reverse=True)
    written = read_config(out / "config.toml")
    assert written.auto == ()
    again = out.with_name("again")
    train(written, out=again)
    assert lines(again) == lines(out)
    assert model(again) == model(out)


ELSEWHERE: list[tuple[dict[str, Any], str]] = [
    ({"federation": {"clients": 3}}, "silos have several clients"),
    ({"federation": {"groups": 2}}, "there are groups"),
    ({"algorithm": {"batch_size": 48}}, "a round uses some of the samples, the theorem has all"),
    ({"algorithm": {"window": 2}}, "algorithm.window is 2, the theorem has 1"),
    ({"algorithm": {"anticipation": 1.5}}, "algorithm.anticipation is 1.5 for 2 silos, the theorem has at least 2"),
    ({"model": {"block": "mlp"}}, "blocks are not linear"),
    ({"model": {"fusion": "head", "outputs": 3}}, "scores come from a head, the theorem has a sum"),
    ({"codecs": {"share": "half"}}, "exchanges are compressed"),
]


@pytest.mark.parametrize(("changes", "reason"), ELSEWHERE, ids=[reason for _, reason in ELSEWHERE])
def test_elsewhere_it_says_why_and_goes_by_trials(changes: dict[str, Any], reason: str) -> None:
    told: list[str] = []
    chosen = prepare(changed(**changes), folder=None, tell=told.append).config
    assert told[0] == f'algorithm.step_size = "auto": its theorem does not cover this setting ({reason})'
    measured = changes | {"algorithm": changes.get("algorithm", {}) | {"step_size": "measure"}}
    tried: list[str] = []
    assert chosen.algorithm == prepare(changed(**measured), folder=None, tell=tried.append).config.algorithm
    assert told[1:] == tried
    assert (chosen.auto, chosen.measured) == ((), ())
    number = {"algorithm": changes.get("algorithm", {}) | {"step_size": 0.1}}
    plan = make_plan(changed(**(changes | number)))
    (ours,) = [judged for judged in plan.judgements if judged.theorem.name == OURS]
    assert reason in ours.theorem.differs
    assert plan.advice[0].says.startswith("no promise")


def test_the_papers_theorems_speak_of_no_anticipation() -> None:
    """Without anticipation, or with one local step, ABCD is FedBCD."""

    def differs(**algorithm: object) -> tuple[str, ...]:
        plan = make_plan(changed(algorithm={"step_size": 0.01, **algorithm}))
        (fedbcd,) = [judged for judged in plan.judgements if judged.theorem.name == "FedBCD, Theorem 2"]
        return fedbcd.theorem.differs

    assert differs() == ("silos anticipate each other",)
    assert differs(anticipation=1.0) == differs(local_steps=1) == ()
    assert differs(anticipation=1.0, window=3) == ("local steps also use what was exchanged in earlier rounds",)


def test_tables_and_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "wine.toml"
    path.write_text(
        'data = {name = "wine"}\nfederation = {silos = 3}\nmodel = {block = "linear"}\n'
        'algorithm = {name = "abcd", step_size = "auto", anticipation = "silos", window = 1}\n'
        "run = {rounds = 20, threads = 1}\n"
    )
    printed = []
    for options in ((), ("--json",)):
        with pytest.raises(SystemExit) as ended:
            main(["plan", str(path), *options])
        assert not ended.value.code
        printed.append(capsys.readouterr().out)
    assert "ABCD V(10), 20 rounds" in printed[0]
    assert "the objective does not rise, any Q" in printed[0]
    read = json.loads(printed[1])
    (ours,) = [theorem for theorem in read["theorems"] if theorem["theorem"] == OURS]
    assert ours["applies"]
    assert not ours["above_limit"]
    assert read["step_size"] == pytest.approx(ours["limit"] / 2, rel=1e-5)
    largest = max(ours["block_lipschitz"].values())
    assert ours["limit"] == pytest.approx(2 / (3 * largest), rel=1e-9)
    assert all(f"L_k of {name}" in printed[0] for name in ours["block_lipschitz"])
    assert read["strategies"][0]["strategy"] == "ABCD"
