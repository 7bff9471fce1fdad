"""Section [codecs], and the algorithms that bring codecs along."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from crosshatch.errors import ConfigError
from crosshatch.runs.config import config_text, decode_config, read_config
from crosshatch.runs.prepare import prepare, used_exchanges


def config(**sections: Any) -> dict[str, Any]:
    return {
        "data": {"name": "wine"},
        "federation": {"silos": 2, "clients": 2},
        "algorithm": {"name": "tdcd", "local_steps": 2, "batch_size": 20},
        "run": {"rounds": 2, "name": "coded"},
        **sections,
    }


def test_codecs_reach_the_simulator_and_the_resolved_config(tmp_path: Path) -> None:
    tables = config(codecs={"share": "ef(topk(0.1))", "average": "half"})
    prepared = prepare(decode_config(tables), folder=None)
    plain = prepare(decode_config(config()), folder=None)
    for simulator in (prepared.simulator, plain.simulator):
        simulator.run_round()
    assert prepared.simulator.meter.exchanges["share"] < plain.simulator.meter.exchanges["share"]
    assert prepared.simulator.meter.exchanges["average"] < plain.simulator.meter.exchanges["average"]
    path = tmp_path / "config.toml"
    path.write_text(config_text(prepared.config))
    assert read_config(path).codecs == prepared.config.codecs


@pytest.mark.parametrize("name", ["c-tdcd", "c-hsgd"])
def test_compressed_algorithms_keep_the_largest_of_embeddings_and_head(name: str) -> None:
    """The HSGD paper: log2(128) / 32 of the numbers, in 32 bits each; a head that is not sent has no codec."""
    read = decode_config(config(algorithm={"name": name}))
    assert type(read.algorithm).__name__.lower() == name.removeprefix("c-")
    assert {key: str(codec) for key, codec in read.codecs.items()} == {"share": "topk(0.21875)"}
    head = {"model": {"fusion": "head", "outputs": 2}}
    with_head = decode_config(config(algorithm={"name": name}, **head))
    assert {key: str(codec) for key, codec in with_head.codecs.items()} == dict.fromkeys(
        ("share", "head"), "topk(0.21875)"
    )
    held = decode_config(config(algorithm={"name": name}, federation={"silos": 2, "labels": "silo1"}, **head))
    assert set(held.codecs) == {"share"}
    own = decode_config(config(algorithm={"name": name}, codecs={"head": "half"}, **head))
    assert {key: str(codec) for key, codec in own.codecs.items()} == {"share": "topk(0.21875)", "head": "half"}
    assert 'name = "c-' not in config_text(read)  # resolved: the algorithm and its codecs


@pytest.mark.parametrize(
    ("codecs", "words"),
    [
        ({"shares": "half"}, "codecs.shares is unknown: did you mean 'share'"),
        ({"share": "zip(3)"}, "codecs.share: unknown codec 'zip': choose one of"),
        ({"share": "topp(3)"}, "codecs.share: unknown codec 'topp': did you mean 'topk'"),
        ({"share": "topk(0)"}, "codecs.share"),
        ("half", "codecs = 'half': expected a table"),
    ],
)
def test_bad_codecs(codecs: object, words: str) -> None:
    with pytest.raises(ConfigError, match=words) as caught:
        decode_config(config(codecs=codecs))
    assert "\n" not in str(caught.value)


HOSPITALS = {"silos": [{"name": "a", "clients": 1}, {"name": "b", "clients": 3}], "groups": 2}
RUNS: dict[str, dict[str, Any]] = {
    "fedavg": {"federation": {"silos": 1, "clients": 2}, "algorithm": {"name": "fedavg", "local_steps": 2}},
    "fedsgd": {"federation": {"silos": 2}, "algorithm": {"name": "fedsgd"}},
    "fedsgd, labels held": {"federation": {"silos": 2, "labels": "silo1"}, "algorithm": {"name": "fedsgd"}},
    "fedbcd, in turn": {"federation": {"silos": 2, "labels": "silo1"}, "algorithm": {"name": "fedbcd"}},
    "tdcd": {},
    "tdcd, labels held": {"federation": {"silos": 2, "clients": 2, "labels": "silo2"}},
    "hsgd": {"federation": HOSPITALS | {"labels": "a"}, "algorithm": {"name": "hsgd"}},
    "hsgd, labels shared": {"federation": HOSPITALS, "algorithm": {"name": "hsgd"}},
    "jfl": {"federation": HOSPITALS | {"labels": "a"}, "algorithm": {"name": "jfl"}},
    "tiered": {"federation": HOSPITALS | {"labels": "b"}, "algorithm": {"name": "tiered", "tiers": "H(4) V(2) H(1)"}},
    "tiered, clients only": {"algorithm": {"name": "tiered", "tiers": "V(4) H(2)"}},
    "central": {"algorithm": {"name": "central"}},
}


@pytest.mark.parametrize("name", RUNS)
def test_the_exchanges_of_a_run_are_those_that_send(name: str) -> None:
    model = {"fusion": "head", "outputs": 2} if name.startswith(("hsgd", "jfl")) else {}
    simulator = prepare(decode_config(config(**{"model": model} | RUNS[name])), folder=None).simulator
    for _ in range(2):
        simulator.run_round()
    sends_head = "labels" not in RUNS[name].get("federation", {}) and name.startswith(("hsgd", "jfl"))
    assert set(used_exchanges(simulator)) == set(simulator.meter.exchanges) | ({"head"} if sends_head else set())


def test_only_its_own_codec_changes_the_head() -> None:
    """A codec on `share` leaves the head as it is; one on `head` leaves the embeddings as they are."""
    model = {"fusion": "head", "outputs": 2}
    sizes = {}
    for name, codecs in {"plain": {}, "share": {"share": "half"}, "head": {"head": "half"}}.items():
        prepared = prepare(decode_config(config(model=model, codecs=codecs)), folder=None)
        prepared.simulator.run_round()
        sizes[name] = prepared.simulator.meter.exchanges["share"][0]
    assert sizes["share"] < sizes["head"] < sizes["plain"]
    head = 4 * 3 + 3  # three classes of four numbers, in two bytes instead of four; to one hub and its two clients
    assert sizes["plain"] - sizes["head"] == pytest.approx(3 * head * 2, abs=9)  # the frame names bytes otherwise


def test_a_codec_on_an_exchange_that_the_run_does_not_have() -> None:
    with pytest.raises(ConfigError, match=r"codecs.derivatives: this run has no .*, it has share, broadcast"):
        prepare(decode_config(config(codecs={"derivatives": "half"})), folder=None)
    central = config(algorithm={"name": "central"}, codecs={"share": "half"})
    assert prepare(decode_config(central), folder=None).config.codecs  # the yardstick of a compressed run
