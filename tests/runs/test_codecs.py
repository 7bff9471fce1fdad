"""Section [codecs], and the algorithms that bring codecs along."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from crosshatch.errors import ConfigError
from crosshatch.runs.config import config_text, decode_config, read_config
from crosshatch.runs.prepare import prepare


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
def test_compressed_algorithms_keep_the_largest_on_128_levels(name: str) -> None:
    read = decode_config(config(algorithm={"name": name}))
    assert type(read.algorithm).__name__.lower() == name.removeprefix("c-")
    assert str(read.codecs["share"]) == "topk(0.21875) | quantise(128)"
    assert 'name = "c-' not in config_text(read)  # resolved: the algorithm and its codecs


@pytest.mark.parametrize(
    ("codecs", "words"),
    [
        ({"shares": "half"}, "codecs.shares is unknown: did you mean 'share'"),
        ({"share": "zip(3)"}, "codecs.share"),
        ({"share": "topk(0)"}, "codecs.share"),
        ("half", "codecs = 'half': expected a table"),
    ],
)
def test_bad_codecs(codecs: object, words: str) -> None:
    with pytest.raises(ConfigError, match=words) as caught:
        decode_config(config(codecs=codecs))
    assert "\n" not in str(caught.value)
