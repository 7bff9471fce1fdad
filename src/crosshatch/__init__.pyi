# The public names, listed here once: type checkers read this file, and __init__.py takes each name from the module
# that it is imported from here.

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
from crosshatch.codecs import (
    Chain,
    Codec,
    Draw,
    ErrorFeedback,
    Half,
    Identity,
    Quantise,
    RandomK,
    Stage,
    Step,
    TopK,
    parse_codec,
)
from crosshatch.data.build import federate, load_dataset
from crosshatch.data.data_settings import DataSettings, FederationSettings, Preparation, SampleSplit, SiloSettings
from crosshatch.data.federated import FederatedData, SiloData, merge_clients, with_sample_weights
from crosshatch.data.reading.arrays import federation_from_arrays
from crosshatch.errors import (
    ConfigError,
    CrosshatchError,
    DataError,
    DivergenceError,
    MessageError,
    ModelError,
    PartitionError,
    RunError,
    TrainingError,
)
from crosshatch.exchanges.algorithm import Algorithm
from crosshatch.exchanges.declared import Declared
from crosshatch.exchanges.vertical import Federation
from crosshatch.graphs import Graph
from crosshatch.local.local_steps import LocalSteps
from crosshatch.network import BandwidthNetwork, ConstantNetwork, Link
from crosshatch.privacy.privacy_settings import PrivacySettings
from crosshatch.report.compare import compare_runs
from crosshatch.report.figures.write_figures import write_figures
from crosshatch.report.page import write_report
from crosshatch.report.pooled import pool_seeds
from crosshatch.report.runs import read_run
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
from crosshatch.task.losses import (
    ClassWeighted,
    CrossEntropy,
    Logistic,
    MultiLogistic,
    SampleLoss,
    SampleWeighted,
    Squared,
)
from crosshatch.task.model_settings import ModelSettings
from crosshatch.task.optimisers import Adam, Momentum
from crosshatch.task.regulariser import Regulariser
from crosshatch.task.task import Task
from crosshatch.testing.check_federation import check_federation
from crosshatch.testing.federations import FederationCase
from crosshatch.topology import Topology
from crosshatch.workers.crew import InlineWorkers
from crosshatch.workers.employ import employ
from crosshatch.workers.ray_crew import RayWorkers

__all__ = [
    "ABCD", "DCPA", "HSGD", "JFL", "MTCD", "STCD", "TDCD", "Adam", "Algorithm", "BandwidthNetwork", "Central", "Chain",
    "ClassWeighted", "Codec", "ConfigError", "ConstantNetwork", "CrossEntropy", "CrosshatchError", "DataError",
    "DataSettings", "Declared", "DivergenceError", "Draw", "ErrorFeedback", "FedAvg", "FedBCD", "FedSGD",
    "FederatedData", "Federation", "FederationCase", "FederationSettings", "Graph", "Half", "Halving", "Head",
    "Identity", "InlineWorkers", "InverseSqrt", "Link", "LocalSteps", "Logistic", "MessageError", "ModelError",
    "ModelSettings", "Momentum", "MultiLogistic", "PartitionError", "Preparation", "PrivacySettings", "Quantise",
    "RandomK", "RayWorkers", "Regulariser", "RunError", "SampleLoss", "SampleSplit", "SampleWeighted", "SiloData",
    "SiloSettings", "Simulator", "Squared", "Stage", "Step", "Sum", "Task", "Tiered", "TopK", "Topology",
    "TrainingError", "Watcher", "audit_attacks", "audit_theorem1", "build_task", "check_federation", "compare_runs",
    "employ", "federate", "federation_from_arrays", "load_dataset", "load_run", "merge_clients", "parse_codec",
    "pool_seeds", "read_config", "read_run", "study", "sweep", "train", "with_sample_weights", "write_figures",
    "write_report",
]  # fmt: skip
