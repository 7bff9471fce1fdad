"""The public API is `crosshatch.__all__`: pinned here, and every name with an example that is run."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys

import pytest

import crosshatch
from crosshatch.runs.config_names import ALGORITHMS
from tests.architecture.modules import ROOT

# Sorted as sorted() does. Adding a name here is a promise to users; removing one breaks it: say so in CHANGELOG.md.
EXPORTED = [
    "ABCD",
    "Adam",
    "Algorithm",
    "BandwidthNetwork",
    "Central",
    "Chain",
    "ClassWeighted",
    "Codec",
    "ConfigError",
    "ConstantNetwork",
    "CrossEntropy",
    "CrosshatchError",
    "DCPA",
    "DataError",
    "DataSettings",
    "Declared",
    "DivergenceError",
    "Draw",
    "ErrorFeedback",
    "FedAvg",
    "FedBCD",
    "FedSGD",
    "FederatedData",
    "Federation",
    "FederationCase",
    "FederationSettings",
    "Graph",
    "HSGD",
    "Half",
    "Halving",
    "Head",
    "Identity",
    "InlineWorkers",
    "InverseSqrt",
    "JFL",
    "Link",
    "LocalSteps",
    "Logistic",
    "MTCD",
    "MessageError",
    "ModelError",
    "ModelSettings",
    "Momentum",
    "MultiLogistic",
    "PartitionError",
    "Preparation",
    "PrivacySettings",
    "Quantise",
    "RandomK",
    "RayWorkers",
    "Regulariser",
    "RunError",
    "STCD",
    "SampleLoss",
    "SampleSplit",
    "SampleWeighted",
    "SiloData",
    "SiloSettings",
    "Simulator",
    "Squared",
    "Stage",
    "Step",
    "Sum",
    "TDCD",
    "Task",
    "Tiered",
    "TopK",
    "Topology",
    "TrainingError",
    "Watcher",
    "audit_attacks",
    "audit_theorem1",
    "build_task",
    "check_federation",
    "compare_runs",
    "employ",
    "federate",
    "federation_from_arrays",
    "load_dataset",
    "load_run",
    "merge_clients",
    "parse_codec",
    "pool_seeds",
    "read_config",
    "read_run",
    "study",
    "sweep",
    "train",
    "with_sample_weights",
    "write_figures",
    "write_report",
]


def test_exports_are_pinned() -> None:
    assert sorted(crosshatch.__all__) == EXPORTED
    assert sorted(EXPORTED) == EXPORTED


@pytest.mark.parametrize("name", ALGORITHMS)
def test_every_algorithm_of_a_config_is_exported(name: str) -> None:
    kind = ALGORITHMS[name]
    assert kind.__name__ in EXPORTED, f"crosshatch.{kind.__name__} is absent: what configs can run, programs can too"
    assert getattr(crosshatch, kind.__name__) is kind


def test_what_authors_are_promised_is_exported() -> None:
    page = (ROOT / "docs" / "howto" / "extending.md").read_text(encoding="utf-8")
    table = page.partition("| for | public names |")[2]
    names = re.findall(r"`(\w+)`", table)
    assert len(names) > 30
    assert set(names) <= set(EXPORTED)


@pytest.mark.parametrize("name", EXPORTED)
def test_export_has_an_example(name: str) -> None:
    text = inspect.getdoc(getattr(crosshatch, name)) or ""
    assert ">>> " in text, f"give the docstring of crosshatch.{name} an example; the test run executes it"


@pytest.mark.parametrize("name", EXPORTED)
def test_export_is_listed_by_dir(name: str) -> None:
    assert name in dir(crosshatch), "exports resolved late must be in __dir__ too: completion and the docs rely on it"


def test_unknown_name_is_refused() -> None:
    with pytest.raises(AttributeError, match="TDDC"):
        getattr(crosshatch, "TDDC")  # noqa: B009 - a type checker refuses crosshatch.TDDC, as it should


def test_import_is_cheap() -> None:
    program = "import sys, crosshatch; crosshatch.FedSGD; print(*sys.modules)"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert {"torch", "polars", "sklearn"}.isdisjoint(ran.stdout.split())
