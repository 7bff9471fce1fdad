"""Crosshatch trains one model on data split both ways: by features across silos, by samples across their clients.

Everything named here is loaded when it is first used, so that importing the package costs next to nothing.
"""

from __future__ import annotations

TYPE_CHECKING = False  # as type checkers know it: `typing` takes longer to load than all the rest
if TYPE_CHECKING:
    from typing import Any

    from crosshatch.algorithms.abcd import ABCD
    from crosshatch.algorithms.central import Central
    from crosshatch.algorithms.dcpa import DCPA
    from crosshatch.algorithms.fedavg import FedAvg
    from crosshatch.algorithms.fedbcd import FedBCD
    from crosshatch.algorithms.fedsgd import FedSGD
    from crosshatch.algorithms.hsgd import HSGD
    from crosshatch.algorithms.jfl import JFL
    from crosshatch.algorithms.mtcd import MTCD, STCD
    from crosshatch.algorithms.tdcd import TDCD
    from crosshatch.algorithms.tiered import Tiered
    from crosshatch.audit.attacks import audit_attacks
    from crosshatch.audit.theorem1 import audit_theorem1
    from crosshatch.codecs import parse_codec
    from crosshatch.data.build import federate, load_dataset
    from crosshatch.data.data_settings import DataSettings, FederationSettings, Preparation, SampleSplit, SiloSettings
    from crosshatch.data.federated import FederatedData, SiloData, merge_clients, with_sample_weights
    from crosshatch.data.reading.arrays import federation_from_arrays
    from crosshatch.errors import CrosshatchError
    from crosshatch.graphs import Graph
    from crosshatch.local.local_steps import LocalSteps
    from crosshatch.network import BandwidthNetwork, ConstantNetwork, Link
    from crosshatch.privacy.privacy_settings import PrivacySettings
    from crosshatch.report import compare_runs, pool_seeds, read_run, write_figures, write_report
    from crosshatch.runs.config import read_config
    from crosshatch.runs.train import train
    from crosshatch.runs.trained.load_run import load_run
    from crosshatch.runs.watcher import Watcher
    from crosshatch.schedules import Halving, InverseSqrt
    from crosshatch.simulator.simulator import Simulator
    from crosshatch.studies.whole_study import study
    from crosshatch.sweeps.whole_sweep import sweep
    from crosshatch.task.build_task import build_task
    from crosshatch.task.fusion import Head, Sum
    from crosshatch.task.losses import ClassWeighted, CrossEntropy, Logistic, MultiLogistic, SampleWeighted, Squared
    from crosshatch.task.model_settings import ModelSettings
    from crosshatch.task.optimisers import Adam, Momentum
    from crosshatch.task.regulariser import Regulariser
    from crosshatch.task.task import Task
    from crosshatch.topology import Topology

__all__ = [
    "ABCD",
    "DCPA",
    "HSGD",
    "JFL",
    "MTCD",
    "STCD",
    "TDCD",
    "Adam",
    "BandwidthNetwork",
    "Central",
    "ClassWeighted",
    "ConstantNetwork",
    "CrossEntropy",
    "CrosshatchError",
    "DataSettings",
    "FedAvg",
    "FedBCD",
    "FedSGD",
    "FederatedData",
    "FederationSettings",
    "Graph",
    "Halving",
    "Head",
    "InverseSqrt",
    "Link",
    "LocalSteps",
    "Logistic",
    "ModelSettings",
    "Momentum",
    "MultiLogistic",
    "Preparation",
    "PrivacySettings",
    "Regulariser",
    "SampleSplit",
    "SampleWeighted",
    "SiloData",
    "SiloSettings",
    "Simulator",
    "Squared",
    "Sum",
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

_HOMES = {
    "ABCD": "algorithms.abcd",
    "Adam": "task.optimisers",
    "BandwidthNetwork": "network",
    "Central": "algorithms.central",
    "ClassWeighted": "task.losses",
    "ConstantNetwork": "network",
    "CrossEntropy": "task.losses",
    "CrosshatchError": "errors",
    "DCPA": "algorithms.dcpa",
    "DataSettings": "data.data_settings",
    "FedAvg": "algorithms.fedavg",
    "FedBCD": "algorithms.fedbcd",
    "FedSGD": "algorithms.fedsgd",
    "FederatedData": "data.federated",
    "FederationSettings": "data.data_settings",
    "Graph": "graphs",
    "HSGD": "algorithms.hsgd",
    "Halving": "schedules",
    "Head": "task.fusion",
    "InverseSqrt": "schedules",
    "JFL": "algorithms.jfl",
    "Link": "network",
    "LocalSteps": "local.local_steps",
    "Logistic": "task.losses",
    "MTCD": "algorithms.mtcd",
    "ModelSettings": "task.model_settings",
    "Momentum": "task.optimisers",
    "MultiLogistic": "task.losses",
    "Preparation": "data.data_settings",
    "PrivacySettings": "privacy.privacy_settings",
    "Regulariser": "task.regulariser",
    "STCD": "algorithms.mtcd",
    "SampleSplit": "data.data_settings",
    "SampleWeighted": "task.losses",
    "SiloData": "data.federated",
    "SiloSettings": "data.data_settings",
    "Simulator": "simulator.simulator",
    "Squared": "task.losses",
    "Sum": "task.fusion",
    "TDCD": "algorithms.tdcd",
    "Task": "task.task",
    "Tiered": "algorithms.tiered",
    "Topology": "topology",
    "Watcher": "runs.watcher",
    "audit_attacks": "audit.attacks",
    "audit_theorem1": "audit.theorem1",
    "build_task": "task.build_task",
    "compare_runs": "report",
    "federate": "data.build",
    "federation_from_arrays": "data.reading.arrays",
    "load_dataset": "data.build",
    "load_run": "runs.trained.load_run",
    "merge_clients": "data.federated",
    "parse_codec": "codecs",
    "pool_seeds": "report",
    "read_config": "runs.config",
    "read_run": "report",
    "study": "studies.whole_study",
    "sweep": "sweeps.whole_sweep",
    "train": "runs.train",
    "with_sample_weights": "data.federated",
    "write_figures": "report",
    "write_report": "report",
}


if not TYPE_CHECKING:  # a type checker shall know the names above, and no others

    def __getattr__(name: str) -> Any:
        """Load a public name from its home."""
        from importlib import import_module

        if name not in _HOMES:
            raise AttributeError(f"module 'crosshatch' has no attribute {name!r}")
        return getattr(import_module(f"crosshatch.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    """The public names."""
    return list(__all__)
