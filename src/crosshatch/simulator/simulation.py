"""A simulation: data, task and algorithm put together, advanced round by round."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from crosshatch.codecs import AnyCodec
from crosshatch.data.federated import FederatedData, move
from crosshatch.errors import ConfigError, DivergenceError, TrainingError, require_whole, saying_where
from crosshatch.exchanges import Algorithm, on_duals, on_federation, on_silos, on_tokens, with_division
from crosshatch.local.forward import fixed_batches, forward
from crosshatch.local.solve import Strategy
from crosshatch.meter import Meter
from crosshatch.network import ConstantNetwork, Network
from crosshatch.protocol.batches import BatchSource
from crosshatch.protocol.class_means import with_class_mean
from crosshatch.schedules import Adaptive
from crosshatch.seeds import require_seed
from crosshatch.simulator.adapt import adapt, require_adaptable, with_value
from crosshatch.simulator.allocator import keep_freed_memory
from crosshatch.simulator.assemble import EngineSettings, assemble
from crosshatch.simulator.assemble_graph import assemble_duals, assemble_tokens, by_columns
from crosshatch.simulator.graph.graph_state import GraphState
from crosshatch.simulator.graph.simulated_duals import SimulatedDuals
from crosshatch.simulator.graph.simulated_tokens import SimulatedTokens
from crosshatch.simulator.listening import Hear, listen_to
from crosshatch.simulator.require_start import require_silos, require_start
from crosshatch.simulator.state import VerticalState
from crosshatch.simulator.vertical.encryption_hook import Privacy
from crosshatch.simulator.vertical.federation import SimulatedFederation
from crosshatch.simulator.vertical.groups import SimulatedServer
from crosshatch.task.task import Task


class Simulation(ABC):
    """Runs an algorithm on a federation; whoever it is for says what to do where numbers are not finite."""

    def __init__(
        self,
        data: FederatedData,
        task: Task,
        algorithm: Algorithm,
        *,
        seed: int = 0,
        network: Network | None = None,
        batches: BatchSource | tuple[BatchSource, ...] | None = None,
        walks: npt.NDArray[np.int64] | None = None,
        codecs: Mapping[str, AnyCodec] | None = None,
        privacy: Privacy | None = None,
        strategy: Strategy = "auto",
        threads: int | None = None,
        device: str = "cpu",
        precision: torch.dtype = torch.float32,
    ) -> None:
        """Put the parties together; weights start as the task's modules have them. `codecs` are by exchange."""
        keep_freed_memory()
        require_seed(seed)
        if threads is not None:
            require_whole("threads", threads, least=1, remedy="leave it out to use all cores")
            torch.set_num_threads(threads)
        require_start(data, task, device, precision)
        encrypting = None if privacy is None else privacy.encrypting
        require_silos(algorithm, encrypts=encrypting is not None)
        self.data = move(data, device, precision)
        names = tuple(silo.name for silo in data.silos)
        named = task if task.silos or len(names) != len(task.blocks) else replace(task, silos=names)
        self.task = with_class_mean(named.to(device, precision), self.data)
        self.algorithm = algorithm = with_division(on_federation(algorithm, data), encrypts=encrypting is not None)
        self.meter = Meter()
        threads = threads or torch.get_num_threads()
        engine = EngineSettings(
            network or ConstantNetwork(), self.meter, strategy, threads, precision, codecs or {}, encrypting
        )  # fmt: skip
        self.threads, self.codecs = engine.threads, engine.codecs
        self.federation: SimulatedFederation | SimulatedServer | SimulatedTokens | SimulatedDuals
        self.state: VerticalState | GraphState  # everything that a later round depends on
        if not on_silos(algorithm):
            self.data = by_columns(self.data)
        if on_tokens(algorithm):
            self.federation = assemble_tokens(self.data, self.task, algorithm, engine, seed=seed, walks=walks)
            self.state = GraphState(self.federation)
        elif on_duals(algorithm):
            self.federation = assemble_duals(self.data, self.task, algorithm, engine, seed=seed)
            self.state = GraphState(self.federation)
        elif on_silos(algorithm):
            self.federation = assemble(self.data, self.task, algorithm, engine, seed=seed, batches=batches)
            self.state = VerticalState(self.federation, algorithm, self.task)
        require_adaptable(algorithm, task, on_graph=not isinstance(self.state, VerticalState))
        self.round = 0
        self.describe_workers: Callable[[], dict[str, Any]] | None = None  # where others compute
        self.features_here = True  # or workers alone have them
        self.embed: Callable[[Sequence[Tensor], Sequence[Tensor]], Sequence[Tensor]] = self._embed
        self.embed_training: Callable[[Sequence[Tensor], int | None], Sequence[Tensor]] = self._embed_training

    @property
    def seconds(self) -> float:
        """Simulated time so far: that of the last hub or token."""
        return self.state.seconds

    @property
    def computing_seconds(self) -> float | None:
        """Where derivatives travel encrypted: how much of the simulated time would be left without any for messages."""
        if isinstance(self.federation, SimulatedFederation) and self.federation.encrypted is not None:
            return self.federation.accounts.links.others[0].clocks.now
        return None

    @property
    def strategies(self) -> dict[str, str]:
        """How each silo's local steps were computed so far; several ways are joined by commas."""
        return self.state.strategies

    @property
    def iteration(self) -> int:
        return self.round * self.algorithm.local_steps

    @property
    def communications(self) -> int | None:
        """On a graph: how many vectors of one number per training sample were sent so far."""
        return self.state.communications(self.meter.messages)

    @property
    def weights(self) -> tuple[Tensor, ...]:
        """The model: the hubs' blocks (averaged over groups) or the tokens' average, one flat vector per silo."""
        return self.state.weights

    def run_round(self) -> None:
        """One round; a TrainingError if numbers are not finite, a DivergenceError where training made them so."""
        schedule = self.algorithm.step_size
        if isinstance(schedule, Adaptive) and self.round > 0 and self.round % schedule.every == 0:
            self.algorithm = adapt(self.algorithm, schedule, self.data, self.task, self.weights)
        try:
            self.state.run_round(self.round, self.algorithm)
        except DivergenceError:  # numbers outgrew the fixed point that is encrypted
            self.round += 1
            with saying_where(f"round {self.round}"):
                raise
        except TrainingError:  # a codec could not write what it got
            self.round += 1
            raise self.diverged("what is to be sent is") from None
        self.round += 1
        broken = self.state.broken()
        if broken is not None:
            raise self.diverged(broken)

    @abstractmethod
    def diverged(self, what: str) -> TrainingError:
        """What to tell people where something is not finite, as "a test score is"."""

    def scores(self, xs: Sequence[Tensor], weights: tuple[Tensor, ...] | None = None) -> Tensor:
        """Scores (n, c) of samples given as one tensor per silo, under the hubs' blocks or other `weights`."""
        model = self.weights if weights is None else weights
        return torch.cat([self._combine(model, self.embed(model, batch)) for batch in fixed_batches(xs)])

    def _embed(self, model: Sequence[Tensor], xs: Sequence[Tensor]) -> list[Tensor]:
        return [
            forward(self.task, j, weights, x, keep=False, threads=self.threads)[0]
            for j, (weights, x) in enumerate(zip(model, xs, strict=True))
        ]

    def _embed_training(self, model: Sequence[Tensor], samples: int | None) -> list[Tensor]:
        return self._embed(model, [silo.train[:samples] for silo in self.data.silos])

    def _combine(self, model: Sequence[Tensor], embeddings: Sequence[Tensor]) -> Tensor:
        with torch.no_grad():
            return self.task.combine(embeddings, self.task.head_in(model))

    def listen(self, hear: Hear) -> None:
        """Have `hear` told of every message between silos from now on, with its values."""
        if not isinstance(self.state, VerticalState):
            raise ConfigError(
                f"messages between silos are recorded, {type(self.algorithm).__name__} sends along a graph: "
                "choose another algorithm.name"
            )
        listen_to(self.state.federation, self.algorithm, hear)

    def align(self) -> None:
        """Have memory laid out as after `restore`, so that rounds to come give the bits they would give there."""
        self.state.align()

    def snapshot(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Everything a later round depends on, as tensors and plain data."""
        plain: dict[str, Any] = {"round": self.round, "meter": self.meter.snapshot()}
        if isinstance(self.algorithm.step_size, Adaptive):
            plain["step_size"] = self.algorithm.step_size.value
        return self.state.snapshot(), plain

    def restore(self, tensors: dict[str, Tensor], plain: dict[str, Any]) -> None:
        self.state.restore(tensors)
        self.meter.load(plain["meter"])
        self.round = int(plain["round"])
        if isinstance(self.algorithm.step_size, Adaptive):
            self.algorithm = with_value(self.algorithm, float(plain["step_size"]))
