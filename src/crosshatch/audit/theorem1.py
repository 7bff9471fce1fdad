"""Theorem 1 of FedBCD on a run: other data that give the same messages, and what is recovered where it fails.

Liu et al., arXiv:1912.11187, section 6: nobody can tell a silo's rows from the scores it sent, however many, if it has
two features or more. The proof turns rows and weights by an orthogonal U (`other_data.py`). Here the whole run is run
again with both, and its messages are compared with those that were recorded.
"""

import copy
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
import torch

from crosshatch.audit.attack_findings import AttackFindings
from crosshatch.audit.audited_run import AuditedRun, Replayed, open_run, replay
from crosshatch.audit.conditions import audited_silos
from crosshatch.audit.on_labels.label_leak import labels_from_derivatives
from crosshatch.audit.other_data import Matrix, OtherData, find_other_data
from crosshatch.audit.recoveries import Recovery, of_one_feature, sent_by, with_known_rows, with_known_weights
from crosshatch.errors import RunError
from crosshatch.exchanges import declared
from crosshatch.seeds import generator
from crosshatch.simulator.listening import Heard
from crosshatch.simulator.simulator import Simulator

SAME = 1e-9  # how far messages may be apart, relative to the largest number in them if that is above 1
ROUNDING = {"float32": 1e-3, "float64": 1e-9}  # what a run is reproduced to, in the same sense, by its precision


@dataclass(frozen=True)
class SiloFindings:
    """What was found of one silo.

    `others`: how many other data sets the proof gives: "infinitely many", "one" or "none". `data_difference` of the one
    that was tried, relative to the norm of the true one; `message_difference`: the largest in all messages of both.
    """

    silo: str
    features: int
    others: str
    data_difference: float | None
    message_difference: float | None
    statistics_kept: bool
    same_messages: bool
    recoveries: tuple[Recovery, ...]


@dataclass(frozen=True)
class Theorem1:
    """The audit of a run. `reproduced`: how far the run, run again in double precision, is from what was recorded."""

    run: str
    algorithm: str
    labels: str
    start: str
    rounds: int
    messages: int
    reproduced: float
    silos: tuple[SiloFindings, ...]
    label_leaks: tuple[AttackFindings, ...]


def audit_theorem1(
    run: Path | str, *, silo: str | None = None, private_start: bool = False, folder: Path | None = None
) -> Theorem1:
    """Check FedBCD's Theorem 1 on a run whose messages were recorded, for one silo or all.

    Initial weights follow from the seed that all silos share, so others know them, unless `private_start` says that the
    silo has drawn its own. Findings are also written into the run directory, as `audit_theorem1.json`.

    >>> import tempfile
    >>> from crosshatch import read_config, train
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     config = Path(folder, "wine.toml")
    ...     written = config.write_text('data = {name = "wine"}')
    ...     changes = ["algorithm.name=fedbcd", "run.rounds=20", "run.threads=1", "run.record_messages=true"]
    ...     outcome = train(read_config(config, changes), out=Path(folder, "run"))
    ...     found = audit_theorem1(Path(folder, "run"))
    >>> [(one.silo, one.others, one.data_difference > 0.5, one.message_difference < 1e-9) for one in found.silos]
    [('silo1', 'infinitely many', True, True), ('silo2', 'infinitely many', True, True)]
    """
    with open_run(run, folder) as audited:
        found = _check(audited, silo, private_start=private_start)
        audited.write("theorem1", asdict(found))
    return found


def _check(audited: AuditedRun, silo: str | None, *, private_start: bool) -> Theorem1:
    silos = audited_silos(audited, silo)
    recorded = audited.messages
    truth = replay(audited.simulator(precision="float64"), audited.rounds)
    apart = _apart(recorded, truth.messages)
    precision = audited.config.run.precision
    if apart > ROUNDING[precision] * _size(recorded):
        raise RunError(
            f"{audited.path}: run again it sends other messages than were recorded (they differ by {apart:.2g}): its "
            "data or Crosshatch have changed since, train it again"
        )
    return Theorem1(
        str(audited.path), audited.algorithm, audited.data.label_silo or "shared",
        "private" if private_start else "known", audited.rounds, len(recorded), apart,
        tuple(_audit_silo(audited, j, truth, private_start=private_start) for j in silos),
        tuple(labels_from_derivatives(audited)),
    )  # fmt: skip


def _audit_silo(audited: AuditedRun, silo: int, truth: Replayed, *, private_start: bool) -> SiloFindings:
    x = audited.features(silo).double().numpy()
    start, _ = audited.linear_weights(silo, truth.weights[0])
    fixed = start[:0] if private_start else start
    other = find_other_data(x, fixed, seed=audited.config.run.seed)
    differs = apart = None
    if other is not None:
        differs = other.difference(x)
        apart = _apart(_reference(audited, truth), replay(_with_other(audited, silo, other), audited.rounds).messages)
    return SiloFindings(
        audited.task.names[silo],
        x.shape[1],
        _others(other),
        differs,
        apart,
        other is not None and other.statistics_kept,
        apart is not None and apart <= SAME * _size(truth.messages),
        _recoveries(audited, silo, x),
    )


def _reference(audited: AuditedRun, truth: Replayed) -> Sequence[Heard]:
    """What to compare with: the recorded messages, unless they were rounded to single precision."""
    return audited.messages if audited.config.run.precision == "float64" else truth.messages


def _others(other: OtherData | None) -> str:
    if other is None:
        return "none"
    return "infinitely many" if other.free > 1 else "one"


def _with_other(audited: AuditedRun, silo: int, other: OtherData) -> Simulator:
    """The run before its first round with a silo's rows and weights turned, in double precision."""
    data, task = audited.data, audited.task
    turn = torch.from_numpy(other.turn)
    mine = data.silos[silo]
    turned = replace(mine, train=torch.from_numpy(other.rows).reshape(mine.train.shape))
    block = copy.deepcopy(task.blocks[silo]).double()
    with torch.no_grad():
        for parameter in block.parameters():
            if parameter.dim() == 2:
                parameter.copy_(parameter @ turn)
    return audited.simulator(
        replace(data, silos=(*data.silos[:silo], turned, *data.silos[silo + 1 :])),
        replace(task, blocks=(*task.blocks[:silo], block, *task.blocks[silo + 1 :])),
        precision="float64",
    )


def _recoveries(audited: AuditedRun, silo: int, x: Matrix) -> tuple[Recovery, ...]:
    sent = sent_by(silo, audited.messages, turns=declared(audited.config.algorithm).takes_turns)
    if not sent:
        return ()
    weights = audited.again.weights  # in the run's own precision: messages are compared with what it computed
    used = {one.moment: audited.linear_weights(silo, weights[one.moment]) for one in sent}
    found = [with_known_weights(sent, used, x)]
    found.append(with_known_rows(sent, x, generator(audited.config.run.seed, "known rows", silo)))
    if x.shape[1] == 1:
        found += of_one_feature(sent, x, standardised=audited.config.data.standardise)
    return tuple(found)


def _apart(one: Sequence[Heard], other: Sequence[Heard]) -> float:
    """The largest difference between two courses of messages; infinite where they are not about the same."""
    if [m.place for m in one] != [m.place for m in other]:
        return float("inf")
    if any(not np.array_equal(a.ids, b.ids) for a, b in zip(one, other, strict=True)):
        return float("inf")
    pairs = zip(one, other, strict=True)
    return max((float((a.values.double() - b.values.double()).abs().max()) for a, b in pairs), default=0.0)


def _size(messages: Sequence[Heard]) -> float:
    """The largest number in the messages, or 1."""
    return max(1.0, max((float(message.values.abs().max()) for message in messages), default=0.0))
