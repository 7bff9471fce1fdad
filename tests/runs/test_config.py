"""Configs: reading, overriding, refusing, and writing back."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from crosshatch.algorithms.tdcd import TDCD
from crosshatch.errors import ConfigError, CrosshatchError
from crosshatch.network import BandwidthNetwork, Link
from crosshatch.runs.config import config_text, decode_config, read_config
from crosshatch.runs.config_names import ALGORITHMS
from crosshatch.schedules import Halving

TEXT = """
[data]
name = "breast_cancer"
[federation]
silos = [{ name = "a", groups = ["mean"] }, { name = "b", groups = ["error", "worst"], clients = 5 }]
clients = 4
[algorithm]
name = "tdcd"
local_steps = 5
step_size = { kind = "halving", value = 0.5, every = 20 }
batch_size = 64
[network]
kind = "bandwidth"
step_seconds = "measure"
links = { client-hub = { latency = 0.05, up = 14, down = 110 } }
[run]
rounds = 40
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "first.toml").write_text(TEXT)
    return tmp_path / "first.toml"


def test_sections_become_values(path: Path) -> None:
    config = read_config(path)
    assert config.algorithm == TDCD(local_steps=5, step_size=Halving(0.5, 20), batch_size=64)
    assert config.network == BandwidthNetwork(links={"client-hub": Link(0.05, 14.0, 110.0)})
    assert config.measure_step
    assert config.name == "first"
    assert config.model.block == "linear"


def test_written_back_and_read_again(path: Path) -> None:
    config = read_config(path, ["model.blocks.a.block=mlp", "model.blocks.a.hidden=[3, 4]", "evaluate.targets=[]"])
    assert decode_config(tomllib.loads(config_text(config))) == config


@pytest.mark.parametrize("name", sorted(ALGORITHMS))
def test_every_algorithm_written_back(path: Path, name: str) -> None:
    kept = read_config(path)
    config = decode_config(
        {"data": {"name": kept.data.name}, "algorithm": {"name": name, "step_size": 0.25}, "run": {"rounds": 1}}
    )
    text = config_text(config)
    assert decode_config(tomllib.loads(text)) == config
    assert "step_size = 0.25" in text


def test_paths_start_from_the_config(tmp_path: Path) -> None:
    folder = tmp_path / "deep"
    folder.mkdir()
    (folder / "own.toml").write_text("""
[data]
path = "labels.csv"
[federation]
silos = [{ name = "a", path = "../a.csv", test_path = "t.csv" }]
[model]
block = "mine.py:Block"
blocks.a.block = "other.py:Block"
[algorithm]
name = "fedsgd"
[run]
rounds = 1
""")
    config = read_config(folder / "own.toml")
    assert config.data.path == str(folder / "labels.csv")
    assert isinstance(config.federation.silos, tuple)
    assert config.federation.silos[0].path == str(folder / "../a.csv")
    assert config.federation.silos[0].test_path == str(folder / "t.csv")
    assert config.model.block == f"{folder}/mine.py:Block"
    assert config.model.blocks["a"]["block"] == f"{folder}/other.py:Block"


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("run.round=3", "unknown key run.round: did you mean 'rounds'?"),
        ("run.rounds=x", "run.rounds = 'x': expected a whole number"),
        ("run.rounds=", "run.rounds is missing"),
        ("run.rounds=0", "run.rounds = 0: must be at least 1"),
        ("run.seed=-1", "run.seed = -1"),
        ("run.name=a/b", "run.name = 'a/b'"),
        ("run.checkpoint_every=0", "run.checkpoint_every = 0"),
        ("run.precision=float16", "run.precision = 'float16': expected 'float32' or 'float64'"),
        ("evaluate.every=0", "evaluate.every = 0"),
        ("evaluate.metrics=[]", "evaluate.metrics is empty"),
        ('evaluate.targets=["auc"]', "target 'auc' is not METRIC=NUMBER"),
        ("evaluat.every=1", "unknown section [evaluat]: did you mean [evaluate]?"),
        ("algorithm.name=tdc", "algorithm.name = 'tdc' is unknown: did you mean 'tdcd'?"),
        ("algorithm.name=", "algorithm.name is missing: choose one of abcd"),
        ("algorithm.local_steps=0", "algorithm.local_steps = 0: Q must be at least 1"),
        ("algorithm.local_step=2", "unknown key algorithm.local_step: did you mean 'local_steps'?"),
        ("algorithm.step_size=-1", "algorithm.step_size: a step size must be positive"),
        (
            "algorithm.step_size=fast",
            'step_size = \'fast\': expected a number, a schedule\'s table, "auto" or "measure"',
        ),
        ("algorithm.step_size=[1]", "algorithm.step_size: a step size is a number or a schedule table"),
        ("algorithm.local_steps=x", 'local_steps = \'x\': expected a whole number, "auto" or "measure"'),
        ("network.kind=slow", "network.kind = 'slow' is unknown: "),
        ("network.links.x.up=3", "network.links has 'x'"),
        ("network.links.client-hub.upp=3", "unknown key network.links.client-hub.upp: did you mean 'up'?"),
        ("network.links.client-hub.up=0", "up = 0.0: must be above 0"),
        ("model.fusion=heads", "model.fusion = 'heads': expected 'sum' or 'head'"),
        ("model.outputs=0", "model.outputs must be at least 1, got 0"),
        ("model.head_holder=a", "there is no head"),
        ("model.l2=-1", "l2 = -1"),
        ("model.blocks.a.blok=mlp", "unknown key model.blocks.a.blok: did you mean 'block'?"),
        ("federation.silos.1.client=3", "unknown key federation.silos[1].client: did you mean 'clients'?"),
        ("federation.silos.7.clients=3", "'7' is not an entry of a list of 2"),
        ("federation.clients=many", "federation.clients = 'many': expected a whole number or 'each'"),
        ("data.name=3", "data.name = 3: expected a string"),
        ("data.name.x=3", "is 'breast_cancer', not a table"),
        ("data.name.x.y=3", "not a table"),
        ("rounds=3", "write section.key=value"),
        ("run.rounds", "write section.key=value"),
        ("run..x=1", "write section.key=value"),
    ],
)
def test_refusals(path: Path, override: str, words: str) -> None:
    with pytest.raises(CrosshatchError) as caught:
        read_config(path, [override])
    message = str(caught.value)
    assert words in message
    assert "\n" not in message
    assert message.startswith(f"--set {override}: ")


def test_a_mean_over_more_evaluations_than_there_are(path: Path) -> None:
    """Seven rounds, evaluated every three: at 0, 3, 6 and 7."""
    given = ["run.rounds=7", "evaluate.every=3"]
    assert read_config(path, [*given, "evaluate.smooth=4"]).evaluate.smooth == 4
    with pytest.raises(
        ConfigError, match=r"evaluate\.smooth = 5 is more than the 4 evaluations of run\.rounds = 7"
    ) as caught:
        read_config(path, [*given, "evaluate.smooth=5"])
    assert str(caught.value).startswith("--set evaluate.smooth=5: ")


def test_a_refusal_names_the_override_that_began_it_or_the_file(path: Path) -> None:
    path.write_text(path.read_text().replace("rounds = 40", "rounds = 0"))
    for overrides in ([], ["run.seed=3"]):
        with pytest.raises(ConfigError, match=r"run\.rounds = 0") as caught:
            read_config(path, overrides)
        assert str(caught.value).startswith(f"{path}: ")
    with pytest.raises(ConfigError, match=r"run\.rounds = -1") as caught:
        read_config(path, ["run.seed=3", "run.rounds=-1", "run.threads=1"])
    assert str(caught.value).startswith("--set run.rounds=-1: ")


@pytest.mark.parametrize("section", ["data", "algorithm", "run"])
def test_missing_section(path: Path, section: str) -> None:
    tables = tomllib.loads(path.read_text())
    del tables[section]
    with pytest.raises(ConfigError, match=rf"section \[{section}\] is missing"):
        decode_config(tables)


def test_values_of_overrides(path: Path) -> None:
    config = read_config(
        path, ["run.name=2012-05-01", "data.leave_out=['x']", "algorithm.batch_size=", "run.stop_at_targets=true"]
    )
    assert config.name == "2012-05-01"
    assert config.data.leave_out == ("x",)
    assert isinstance(config.algorithm, TDCD)
    assert config.algorithm.batch_size is None
    assert config.run.stop_at_targets


def test_a_value_cannot_smuggle_in_keys(path: Path) -> None:
    assert read_config(path, ["run.device='a'\nseed = 3"]).run.seed == 0


def test_file_absent(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"no config file .*absent.toml: check the path"):
        read_config(tmp_path / "absent.toml")


def test_file_is_a_folder(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"is a folder, not a config file"):
        read_config(tmp_path)


def test_file_is_no_toml(tmp_path: Path) -> None:
    (tmp_path / "bad.toml").write_text("[data]\nname = \n")
    with pytest.raises(ConfigError, match=r"bad.toml is not TOML: .*line 2"):
        read_config(tmp_path / "bad.toml")


def test_file_is_no_text(tmp_path: Path) -> None:
    for content in (b"\xff\xfe\x00", b"\x7fELF\x00\x01"):
        (tmp_path / "bad.toml").write_bytes(content)
        with pytest.raises(ConfigError, match=r"bad.toml is not a text file: a config is a TOML file"):
            read_config(tmp_path / "bad.toml")
