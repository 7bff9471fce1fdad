"""The attacks on labels: by derivatives where they travel in clear, by gradients where they travel encrypted."""

from collections.abc import Iterator, Sequence

from crosshatch.audit.attack_findings import AttackFindings
from crosshatch.audit.audited_run import AuditedRun
from crosshatch.audit.on_labels.clusters import cluster, named, named_by_known
from crosshatch.audit.on_labels.label_leak import (
    BY_DERIVATIVE,
    LOWERS,
    chance_and_columns,
    derivatives_of,
    labels_from_derivatives,
    true_labels,
)
from crosshatch.audit.on_labels.sums_attacks import attack_sums
from crosshatch.simulator.listening import Heard

BY_CLUSTERS = "labels by clusters of directions"
_BY_KNOWN = "accuracy by one known label per class"


def attack_labels(run: AuditedRun) -> Iterator[AttackFindings]:
    """Findings by everybody who gets derivatives or gradients, or one that says why there are none."""
    if not run.labels_held:
        yield AttackFindings(BY_DERIVATIVE, "labels", why="labels are shared: every silo has them")
        return
    readers = sorted({heard.receivers[0] for heard in run.heard if heard.exchange == "gradients"})
    for silo in readers:
        yield from attack_sums(run, silo)
    yield from labels_from_derivatives(run)
    sent = derivatives_of(run)
    if run.task.head is not None and run.data.target in ("binary", "multiclass"):
        yield from (_by_clusters(run, heard, target) for target, heard in sent.items())
    if not readers and not sent:
        yield AttackFindings(BY_DERIVATIVE, "labels", why="the algorithm sends no derivatives")


def _by_clusters(run: AuditedRun, heard: Sequence[Heard], target: str) -> AttackFindings:
    y = true_labels(run).long().numpy()
    classes = int(y.max()) + 1
    seen, likely = cluster(heard, len(y), classes, seed=run.config.run.seed)
    if not len(seen):
        return AttackFindings(
            BY_CLUSTERS, target, why=f"not tried: no message tells of more than {2 * classes} samples"
        )
    figures = {
        "accuracy up to the names of the classes": named(likely, y[seen], classes),
        _BY_KNOWN: named_by_known(likely, y[seen], classes),
    }
    early, likely = cluster(heard[:1], len(y), classes, seed=run.config.run.seed)
    of_first = named_by_known(likely, y[early], classes) if len(early) else 0.0
    if of_first > figures[_BY_KNOWN]:
        figures[f"{_BY_KNOWN}, of the first round's samples"] = of_first
    knows = "the derivatives it was sent and how many classes there are"
    remark = f"{len(seen):,} samples in {len(heard):,} messages"
    lowers, beside = f'model.fusion = "sum" with {LOWERS}', chance_and_columns(run, heard[0].receivers, seen)
    return AttackFindings(BY_CLUSTERS, target, figures, beside, knows, lowers, remark=remark)
