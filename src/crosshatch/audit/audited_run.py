"""A run directory opened for an audit: its config, its data and task, and simulators to run it again."""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
from torch import Tensor

from crosshatch.audit.other_data import Matrix
from crosshatch.data.federated import FederatedData
from crosshatch.errors import RunError
from crosshatch.local.layers import Layer
from crosshatch.local.read_chain import as_chain
from crosshatch.own_parts import blaming
from crosshatch.privacy.operations import OperationSeconds
from crosshatch.runs.checkpoint import read_checkpoint
from crosshatch.runs.config import Config, part_files
from crosshatch.runs.config_names import algorithm_name
from crosshatch.runs.directory import MESSAGES, RunDirectory, stored_config
from crosshatch.runs.one_writer import one_writer
from crosshatch.runs.prepare import make_simulator, prepare
from crosshatch.runs.recorded.message_files import read_messages
from crosshatch.simulator.listening import Heard
from crosshatch.simulator.simulator import Simulator
from crosshatch.task.task import Task

Precision = Literal["float32", "float64"]


@dataclass(frozen=True)
class Replayed:
    """All messages of a run that was run again, and each silo's weights before every round and after the last."""

    messages: tuple[Heard, ...]
    weights: tuple[tuple[Tensor, ...], ...]


def replay(simulator: Simulator, rounds: int) -> Replayed:
    """Run the rounds, and hear everything."""
    heard: list[Heard] = []
    simulator.listen(heard.append)
    weights = [simulator.weights]
    for _ in range(rounds):
        simulator.run_round()
        weights.append(simulator.weights)
    return Replayed(tuple(heard), tuple(weights))


@dataclass(frozen=True)
class AuditedRun:
    """A run that may be run again; `data` and `task` are those of before its first round."""

    path: Path
    config: Config
    data: FederatedData
    task: Task

    @property
    def algorithm(self) -> str:
        """What the config calls it."""
        return algorithm_name(self.config.algorithm)

    @property
    def labels_held(self) -> bool:
        """Whether one silo alone has the labels."""
        return self.data.label_silo is not None

    @cached_property
    def messages(self) -> tuple[Heard, ...]:
        """What was recorded; a RunError where nothing was."""
        return tuple(read_messages(self.path, self.task.names))

    @property
    def rounds(self) -> int:
        return self.messages[-1].round + 1 if self.messages else 0

    def simulator(
        self, data: FederatedData | None = None, task: Task | None = None, precision: Precision | None = None
    ) -> Simulator:
        """The run before its first round, on other data or from other weights, or in another precision."""
        config = self.config
        if precision is not None:
            config = replace(config, run=replace(config.run, precision=precision))
        if config.privacy.encrypts:  # the same numbers bit for bit, without the work
            privacy = replace(config.privacy, ciphertexts="costs", seconds=OperationSeconds())
            config = replace(config, privacy=privacy)
        with blaming(part_files(self.config).names):
            return make_simulator(config, config.algorithm, data or self.data, task or self.task)

    @property
    def recorded(self) -> bool:
        """Whether what silos sent is there to be read."""
        return (self.path / MESSAGES).is_dir()

    @cached_property
    def again(self) -> Replayed:
        """The recorded rounds once more, in the run's own precision; all of them where none were recorded."""
        return replay(self.simulator(), self.rounds if self.recorded else self.trained().round)

    @property
    def heard(self) -> tuple[Heard, ...]:
        """What was recorded, or what is sent when the run is run again; a ConfigError where nobody can hear it."""
        return self.messages if self.recorded else self.again.messages

    def linear_weights(self, silo: int, weights: Sequence[Tensor]) -> tuple[Matrix, Matrix]:
        """A linear block's matrix (c, d) and bias (c,), zeros where it has none."""
        views = [view.double().numpy() for view in self.task.layouts[silo].views(weights[silo]).values()]
        return views[0], views[1] if len(views) > 1 else np.zeros(len(views[0]))

    def trained(self) -> Simulator:
        """The run where its checkpoint left it."""
        simulator = self.simulator()
        checkpoint = RunDirectory(self.path).checkpoint
        if not checkpoint.is_file():
            raise RunError(f"{self.path} has no checkpoint: get it from where the run was made, or train again")
        tensors, state = read_checkpoint(checkpoint)
        simulator.restore(tensors, state.simulator)
        return simulator

    def number(self, silo: str) -> int:
        if silo not in self.task.names:
            raise RunError(f"'{silo}' is not a silo of {self.path}: its silos are {', '.join(self.task.names)}")
        return self.task.names.index(silo)

    def features(self, silo: int) -> Tensor:
        """A silo's training rows, flattened: (n, d)."""
        return self.data.silos[silo].train.flatten(1)

    def linear_layer(self, silo: int) -> Layer | None:
        """The one layer of a silo's block; None where the block is anything but linear."""
        chain = as_chain(self.task.blocks[silo])
        return chain[0] if chain is not None and len(chain) == 1 and chain[0].activation == "none" else None

    def write(self, name: str, findings: Mapping[str, Any]) -> Path:
        """Keep findings beside the run, in a file that is there whole or not at all."""
        directory = RunDirectory(self.path)
        path = self.path / f"audit_{name}.json"
        directory.write_json(path, findings)
        return path


@contextmanager
def open_run(path: Path | str, folder: Path | None = None) -> Iterator[AuditedRun]:
    """The run in a directory, which nobody else writes into meanwhile; a named data set is read from `folder`.

    A RunError where its data are no longer what they were, a warning where that cannot be told.
    """
    path = Path(path)
    if not RunDirectory(path).config.is_file():
        raise RunError(f"{path} is not a run directory: name one, as written by `crosshatch train --out`")
    with one_writer(path, "auditing"):
        config = stored_config(RunDirectory(path))
        assert config is not None
        with blaming(part_files(config).names):
            prepared = prepare(config, folder=folder, of=path, warn=warnings.warn)
        yield AuditedRun(path, prepared.config, prepared.simulator.data, prepared.simulator.task)
