"""The public API is `crosshatch.__all__`: pinned here, and every name with an example that is run."""

from __future__ import annotations

import inspect
import subprocess
import sys

import pytest

import crosshatch
from crosshatch.runs.config_names import ALGORITHMS

# Sorted as sorted() does. Adding a name here is a promise to users; removing one breaks it: say so in CHANGELOG.md.
EXPORTED = [
    "ABCD",
    "Adam",
    "BandwidthNetwork",
    "Central",
    "ClassWeighted",
    "ConstantNetwork",
    "CrossEntropy",
    "CrosshatchError",
    "DCPA",
    "DataSettings",
    "FedAvg",
    "FedBCD",
    "FedSGD",
    "FederatedData",
    "FederationSettings",
    "Graph",
    "HSGD",
    "Halving",
    "Head",
    "InverseSqrt",
    "JFL",
    "Link",
    "LocalSteps",
    "Logistic",
    "MTCD",
    "ModelSettings",
    "Momentum",
    "MultiLogistic",
    "Preparation",
    "PrivacySettings",
    "Regulariser",
    "STCD",
    "SampleSplit",
    "SampleWeighted",
    "SiloData",
    "SiloSettings",
    "Simulator",
    "Squared",
    "Sum",
    "TDCD",
    "Task",
    "Tiered",
    "Topology",
    "Watcher",
    "audit_attacks",
    "audit_theorem1",
    "build_task",
    "compare_runs",
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
