"""From a config to a simulation ready for its first round; everything that can be refused is refused here."""

import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import median

import numpy as np
import torch

from crosshatch.data.build import federate
from crosshatch.data.dataset import Dataset
from crosshatch.data.federated import FederatedData
from crosshatch.data.identity.fingerprint import Fingerprint
from crosshatch.errors import ConfigError, TrainingError
from crosshatch.exchanges import declared, declared_instance, with_division
from crosshatch.network import BandwidthNetwork
from crosshatch.predict.model_shape import COMMON, HEAD
from crosshatch.privacy.exchanges.check_encryption import or_accept
from crosshatch.protocol.idle_clients import Drawn, idle_note
from crosshatch.report.units import human_seconds
from crosshatch.runs.best_round import on_rows
from crosshatch.runs.choosing.auto import PRECISIONS, choose
from crosshatch.runs.choosing.measure import measure
from crosshatch.runs.choosing.trials import Tell, put_aside
from crosshatch.runs.config import Config
from crosshatch.runs.config_names import AnyAlgorithm
from crosshatch.runs.identity.run_data import Load, Warn, load, read_data
from crosshatch.runs.leaking.count_leakage import Leakage, count_leakage
from crosshatch.runs.leaking.exposed_rows import left_out_note, settle_rows
from crosshatch.runs.summary import measure_clients
from crosshatch.simulator.assemble import require_device
from crosshatch.simulator.client_metrics import require_clients
from crosshatch.simulator.simulator import Simulator
from crosshatch.simulator.state import VerticalState
from crosshatch.task.build_task import build_task, resolve_model
from crosshatch.task.directions import VALIDATION
from crosshatch.task.metrics import default_metrics, require_fitting
from crosshatch.task.own_metric import OwnMetric, find_metrics
from crosshatch.task.task import Task


@dataclass(frozen=True)
class Prepared:
    """A simulation and the config it came from, with nothing left to be decided by data or machine.

    `fingerprint` says which data it is, where its owner has a key.
    """

    config: Config
    simulator: Simulator
    fingerprint: Fingerprint | None = None
    leakage: Leakage | None = None  # of labels that one silo holds, where it is counted

    @property
    def client_notes(self) -> tuple[str, ...]:
        """What a user should know of the clients before the first round: where nearly all of them are idle."""
        algorithm = self.config.algorithm
        if algorithm.central or not self.simulator.algorithm.topology.below:
            return ()
        parts = algorithm.local_steps if algorithm.fresh_batches else 1
        drawn = Drawn(algorithm.batch_size, parts, algorithm.fraction)
        assert isinstance(self.simulator.state, VerticalState)
        groups = [group.data for group in self.simulator.state.groups]
        note = idle_note(groups, drawn, algorithm.weights)
        return () if note is None else (note,)


def prepare(
    config: Config,
    *,
    folder: Path | None,
    step_seconds: float | None = None,
    tell: Tell = lambda _: None,
    of: Path | None = None,
    warn: Warn = lambda _: None,
    keep: bool = False,
    load: Load = load,
) -> Prepared:
    """Read the data from the data `folder` by `load`, build the task, put the parties together.

    `step_seconds` stands in for a measurement, where a run that is resumed has one already. `tell` gets a line for
    everything that is tried out or chosen here. `of` is the directory of an earlier run whose data these must be;
    `warn` gets a line where that cannot be told. `keep`: a ledger is told how labels are divided.
    """
    require_device(config.run.device, "run.device")
    dataset, fingerprint = read_data(config, folder, of=of, warn=warn, load=load)
    ready, data, task = assemble(config, dataset, fingerprint, step_seconds=step_seconds, tell=tell, keep=keep)
    del dataset  # large, and no longer needed
    chosen = _choose(ready.config, data, task, tell)
    if chosen is ready.config:
        return ready
    return replace(ready, config=chosen, simulator=make_simulator(chosen, chosen.algorithm, data, task))


def assemble(
    config: Config,
    dataset: Dataset,
    fingerprint: Fingerprint | None = None,
    *,
    step_seconds: float | None = None,
    tell: Tell = lambda _: None,
    keep: bool = False,
) -> tuple[Prepared, FederatedData, Task]:
    """Divide the data, build the task and put the parties together; what can be refused without trials is refused.

    What is "auto" or "measure" is still to be chosen, from the data and the task as the parties were given them.
    """
    seed_given = declared(config.algorithm).division_seed is not None
    algorithm = with_division(declared_instance(config.algorithm), encrypts=config.privacy.encrypts)
    config = replace(config, algorithm=algorithm)
    per_client = config.evaluate.per_client
    data = federate(dataset, config.federation, seed=config.run.seed, per_client=per_client)
    for silo in data.silos:  # they name files of the model, and the parties of the network
        if silo.name in (HEAD, COMMON) or silo.name.startswith(".") or any(sign in silo.name for sign in "/\\\0"):
            raise ConfigError(
                f"federation.silos has '{silo.name}': it names a file, so no '/', no '.' first, not 'head' or 'model'"
            )
    config, data, exposed = settle_rows(config, dataset, data, fingerprint, seed_given=seed_given, keep=keep)
    if exposed is not None and exposed.names:
        tell(left_out_note(exposed))
    config = _resolve(config, data)
    assert config.evaluate.metrics is not None
    if per_client:
        require_clients(data, config.evaluate.metrics)
    assert config.run.threads is not None
    torch.set_num_threads(config.run.threads)
    task = replace(build_task(data, config.model, seed=config.run.seed), optimiser=config.optimiser)
    if config.measure_step:
        assert isinstance(config.network, BandwidthNetwork)
        measured = _measure_step(config, data, task) if step_seconds is None else step_seconds
        config = replace(config, network=replace(config.network, step_seconds=measured), measure_step=False)
    simulator = make_simulator(config, config.algorithm, data, task)
    if config.privacy.encrypts:
        config = _with_operations(config, tell)
        simulator = make_simulator(config, config.algorithm, data, task)
    # one that fails on the few samples of a client shall do so before the rounds, not after them
    if own := [metric for metric in find_metrics(config.evaluate.metrics or ()) if isinstance(metric, OwnMetric)]:
        measure_clients(config, simulator, own, None)
    _check_codecs(config, simulator)
    batch_size = config.algorithm.batch_size
    if batch_size is not None and isinstance(simulator.state, VerticalState):
        simulator.state.fed.draw_batch(batch_size, round=0)  # refuses a batch larger than the data
    leakage = None if exposed is None else count_leakage(config, simulator, exposed)
    if leakage is not None:
        leakage.require_within()
    return Prepared(config, simulator, fingerprint, leakage), data, task


def _choose(config: Config, data: FederatedData, task: Task, tell: Tell) -> Config:
    """Numbers for what is "auto" or "measure"; may take a while."""
    chosen = choose(config, data, task, tell)
    if not chosen.measured:
        return chosen
    if config.privacy.encrypts and not config.privacy.accept_leakage:
        raise ConfigError(
            f"privacy.encryption with algorithm.{chosen.measured[-1]} to be measured: trials on other rows tell more "
            f"about the same labels: give a number, {or_accept()}"
        )
    aside = put_aside(data, seed=config.run.seed, key=chosen.measured[-1])
    least = len(aside.y_train) if aside.groups is None else int(np.unique(aside.groups, return_counts=True)[1].min())

    def simulate(algorithm: AnyAlgorithm) -> Simulator:
        if algorithm.batch_size is not None and algorithm.batch_size > least:  # all that is left
            algorithm = algorithm.with_settings(batch_size=least)
        return make_simulator(config, algorithm, aside, task)

    return measure(chosen, simulate, tell)


def make_simulator(config: Config, algorithm: AnyAlgorithm, data: FederatedData, task: Task) -> Simulator:
    return Simulator(
        data,
        task,
        algorithm,
        seed=config.run.seed,
        network=config.network,
        codecs=config.codecs,
        privacy=config.privacy,
        strategy=config.run.strategy,
        threads=config.run.threads,
        device=config.run.device,
        precision=PRECISIONS[config.run.precision],
    )


def try_rounds(simulator: Simulator, rounds: int) -> list[str]:
    """Have so many rounds simulated for what they cost, which does not depend on their numbers; why these diverged."""
    troubles: list[str] = []
    for _ in range(rounds):
        try:
            simulator.run_round()
        except TrainingError as error:
            troubles = troubles or [str(error)]
    return troubles


def _resolve(config: Config, data: FederatedData) -> Config:
    evaluate = replace(config.evaluate, metrics=tuple(config.evaluate.metrics or default_metrics(data.target)))
    require_fitting(evaluate.metrics or (), data.target, data.classes)
    metrics = evaluate.names
    for target in config.evaluate.parsed_targets:
        on_validation = () if data.y_validation is None else tuple(f"{VALIDATION}{name}" for name in on_rows(metrics))
        if target.metric not in (*metrics, "train_loss", *on_validation):
            raise ConfigError(
                f"evaluate.targets has {target.label}, which is not measured: "
                f"add '{target.metric}' to evaluate.metrics (now {', '.join(metrics)})"
            )
    if config.run.stop_at_targets and not config.evaluate.targets:
        raise ConfigError("run.stop_at_targets = true, but evaluate.targets is empty: name a target such as 'auc=0.75'")
    if data.y_validation is None:
        for place, value in (("run.patience", config.run.patience), ("evaluate.best_by", config.evaluate.best_by)):
            if value is not None:
                raise ConfigError(f"{place} = {value!r} needs validation rows: set data.validation, for example to 0.2")
    elif not on_rows(metrics) or config.evaluate.best_by not in (None, *on_rows(metrics)):
        raise ConfigError(
            f"evaluate.best_by = {config.evaluate.best_by!r}: it is one of what is measured on the validation rows, "
            f"evaluate.metrics ({', '.join(on_rows(metrics)) or 'none of them'}): add it there, or choose another"
        )
    run = replace(
        config.run,
        threads=config.run.threads_each,
        checkpoint_every=config.run.checkpoint_every or config.evaluate.every,
    )
    return replace(config, model=resolve_model(data, config.model), evaluate=evaluate, run=run)


def used_exchanges(simulator: Simulator) -> tuple[str, ...]:
    """What is sent in this run and may have a codec."""
    algorithm, course = simulator.algorithm, simulator.state
    if not isinstance(course, VerticalState) or declared(algorithm).central:
        return ()
    by_server = declared(algorithm).within == "federation"  # it averages all clients itself
    held = simulator.data.label_silo is not None
    used = {
        "share": algorithm.topology.vertical is not None,
        "head": simulator.task.head is not None and not held,
        "derivatives": algorithm.topology.vertical is not None and held,
        "broadcast": bool(algorithm.topology.below) or by_server,
        "average": bool(algorithm.topology.below) or by_server,
        "average_groups": bool(algorithm.topology.above) and not by_server,
    }
    return tuple(exchange for exchange, is_used in used.items() if is_used)


def _check_codecs(config: Config, simulator: Simulator) -> None:
    """A codec that would never encode anything is a mistake; central training, the yardstick, sends nothing at all."""
    used = used_exchanges(simulator)
    for exchange in config.codecs if used else ():
        if exchange not in used:
            raise ConfigError(
                f"codecs.{exchange}: this run has no such exchange, it has {', '.join(used)}: leave the codec out "
                "or name one of these"
            )


def _with_operations(config: Config, tell: Tell) -> Config:
    """The config with the seconds of operations on ciphertexts, where these are charged and not given."""
    if config.privacy.ciphertexts == "real" or config.privacy.seconds is not None:
        return config
    from crosshatch.privacy.measure_operations import measure_operations  # needs gmpy2, which is an extra

    assert config.run.threads is not None
    found = measure_operations(config.privacy.cipher, threads=config.run.threads)
    words = ", ".join(f"{name} {human_seconds(seconds)}" for name, seconds in asdict(found).items())
    tell(f"operations on ciphertexts take: {words}")
    return replace(config, privacy=replace(config.privacy, seconds=found))


def _measure_step(config: Config, data: FederatedData, task: Task) -> float:
    """Seconds of one gradient step on a client's share of a batch, in the slowest silo; three significant digits."""
    task = task.to(config.run.device, PRECISIONS[config.run.precision])
    slowest = 0.0
    for j, (silo, weights) in enumerate(zip(data.silos, task.initial(), strict=True)):
        batch = config.algorithm.batch_size or len(silo.train)
        rows = max(1, batch // (1 if config.algorithm.central else silo.clients))
        x = silo.train[:rows].to(weights)
        leaf = weights.detach().requires_grad_()
        seconds = []
        for _ in range(7):
            start = time.perf_counter()
            torch.autograd.grad(task.embed(j, leaf, x).sum(), leaf, allow_unused=True)
            seconds.append(time.perf_counter() - start)
        slowest = max(slowest, median(seconds[2:]))  # the first ones also warm up
    return float(f"{slowest:.3g}")
