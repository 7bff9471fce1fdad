"""The attacks on a silo's rows from what it sent in all rounds: blind separation and decoders."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from crosshatch.audit.attack_findings import AttackFindings
from crosshatch.audit.audited_run import AuditedRun
from crosshatch.audit.on_rows.completion import all_rounds
from crosshatch.audit.on_rows.decoder_attack import DOUBT, DRAWS, FEW, MANY, decode_often
from crosshatch.audit.on_rows.separation import separate
from crosshatch.seeds import generator
from crosshatch.simulator.listening import Heard

BLIND = "columns by blind separation"
DECODER = "rows by a decoder"
_NONLINEAR = 24  # directions by which what is missing is put in where a block is not linear
_ENOUGH = 200  # samples whose messages tell all, to look at these alone
_SPREAD = {"lowest": np.min, "highest": np.max}
_LOWERS = "fewer rounds, and fewer numbers per sample and round (model.outputs)"


def attack_rows(run: AuditedRun, silo: int) -> Iterator[AttackFindings]:
    """What those to whom a silo sends embeddings or scores make of them."""
    name, seed = run.task.names[silo], run.config.run.seed
    layer, x = run.linear_layer(silo), run.features(silo).double().numpy()
    if not x.size:
        yield AttackFindings(DECODER, name, why="it has no features")
        return
    rank = x.shape[1] + 1 if layer is not None else _NONLINEAR
    draw = generator(seed, "attacked rows", silo)
    heard = embeddings_of(run, silo)
    sent = all_rounds(heard, silo, rank=rank, linear=layer is not None, precision=run.config.run.precision, draw=draw)
    if sent is None:
        why = "it holds the labels, and sends" if run.data.label_silo == name else "it sent"
        if run.task.transfer is not None and run.config.privacy.encrypts:
            why = "not tried: the other side reads sums over them in its gradients, and is sent"
        yield AttackFindings(DECODER, name, why=f"{why} no embeddings")
        return
    order = draw.permutation(len(sent.samples))
    sent = sent.take(order)
    directions, rows = sent.directions, x[sent.samples]
    width = heard[0].values.shape[1]
    remark = (
        f"{len(order):,} samples, {x.shape[1]} columns, {directions.shape[1]} directions sent; "
        f"{100 * sent.share:.3g}% of all samples and rounds were in a batch"
    )
    if layer is not None and directions.shape[1] > 1:
        told = sent.doubt < DOUBT
        told |= told.sum() < _ENOUGH
        told &= sent.batch == np.bincount(sent.batch).argmax()
        found = separate(directions[told], sent.sizes, rows[told], seed=seed)
        figures = {
            "mean correlation": found.mean,
            "mean correlation, highest of all separations": found.highest,
            "columns at 0.9 and more": float((found.correlations >= 0.9).sum()),
            "columns of two values": float(found.two_valued),
            "of these found exactly": float(found.exact),
        }
        beside = {"mean correlation, chance": found.chance}
        knows = "the scores it was sent; columns come up to their order, sign and scale"
        of = f"of {told.sum():,} whose messages tell all, in one batch of a division: " if not told.all() else ""
        yield AttackFindings(BLIND, name, figures, beside, knows, _LOWERS, remark=of + remark)
    elif layer is None:
        yield AttackFindings(BLIND, name, why="not tried: its block is not linear")
    figures = {}
    for known in sorted({min(FEW, len(order) // 2), min(MANY, len(order) // 2)}):
        if known >= 2:
            draws = DRAWS if known <= FEW else 1
            each = decode_often(sent, rows, known, draws=draws, linear=layer is not None, seed=seed)
            figures[name_of := f"R^2 with {known:,} known rows"] = float(np.median(each))
            if draws > 1:
                figures |= {f"{name_of}, {of} of {draws}": float(by(each)) for of, by in _SPREAD.items()}
    warning = ""
    if width >= x.shape[1]:
        warning = (
            f"embeddings of silo '{name}' are as wide as its features ({width} for {x.shape[1]}), set fewer "
            "model.outputs"
        )
    knows = f"the messages it was sent, and the rows of so many samples (of few the median of {DRAWS} draws)"
    yield AttackFindings(DECODER, name, figures, {"R^2, chance": 0.0}, knows, _LOWERS, remark=remark, warning=warning)


def embeddings_of(run: AuditedRun, silo: int) -> list[Heard]:
    """The messages with embeddings of a silo; in a transfer task with held labels A's are half of its components."""
    if run.task.transfer is None or not run.labels_held or not run.task.holds_head(silo):
        return [one for one in run.heard if one.exchange == "share" and one.sender == silo]
    components = [one for one in run.heard if one.exchange == "derivatives" and one.sender == silo]
    return [replace(one, exchange="share", values=one.values[:, : one.values.shape[1] // 2]) for one in components]
