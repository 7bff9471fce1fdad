"""The attacks on an encrypted run: what a silo makes of the gradients it reads, over all rounds."""

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from crosshatch.audit.attack_findings import AttackFindings
from crosshatch.audit.audited_run import AuditedRun
from crosshatch.audit.on_labels.as_bits import bits, few_enough
from crosshatch.audit.on_labels.integer_search import LATTICE_ROWS, search
from crosshatch.audit.on_labels.joint_fit import fit_jointly
from crosshatch.audit.on_labels.kriging import DENSE, choose_prior, dense, krige, likelihood
from crosshatch.audit.on_labels.label_leak import (
    as_numbers,
    chance,
    chance_and_columns,
    columns_alone,
    figures_of,
    read_labels,
    true_labels,
)
from crosshatch.audit.on_labels.told_sums import Equations, ToldSum, as_equations
from crosshatch.audit.other_data import Matrix
from crosshatch.task.losses import unweighted

KRIGING = "labels by kriging over rounds"
JOINT = "labels by a joint fit"
INTEGERS = "labels by integer search"
ALONE = "labels of samples alone in a direction"
_ALONE = 1 - 1e-6  # the leverage from which on a sample's derivative is told by itself
_KNOWS = "its own rows and weights, the gradients it read, which samples were in each batch"
_LOWERS = "larger batches, fewer columns at the silo, fewer rounds"


def attack_sums(run: AuditedRun, silo: int) -> Iterator[AttackFindings]:
    """All attacks by one silo that read gradients."""
    target = f"labels, by {run.task.names[silo]}"
    told = _told(run, silo)
    equations = as_equations(told, len(run.data.y_train))
    beside = _beside(run, told, equations)
    of_all = {name: value for name, value in beside.items() if " after " not in name}
    guess, figures = _by_kriging(run, equations)
    remark = f"{equations.count:,} equations about {len(equations.seen):,} labels, from {len(told):,} rounds"
    lowers = _LOWERS if equations.repeats else f'algorithm.draw = "partition", {_LOWERS}'
    yield AttackFindings(KRIGING, target, figures, beside, _KNOWS, lowers, remark=remark)
    if run.data.target in ("binary", "multiclass"):
        figures = figures_of(run, 0.5 - fit_jointly(told, equations, [guess, _first(equations)]), equations.seen)
        yield AttackFindings(JOINT, target, figures, of_all, _KNOWS, lowers, remark=remark)
    if run.data.target == "binary":
        yield _by_integers(run, told[0], target, silo)
    yield _alone(run, told, equations, target, of_all)


def _told(run: AuditedRun, silo: int) -> list[ToldSum]:
    x = run.features(silo).double().numpy()
    found = []
    for heard in run.heard:
        if heard.exchange == "gradients" and heard.receivers == (silo,):
            matrix, bias = run.linear_weights(silo, run.again.weights[heard.round])
            views = [view.double().numpy() for view in run.task.layouts[silo].views(heard.values).values()]
            rows, means = x[heard.ids], views[0].T
            if len(views) > 1:
                rows, means = np.hstack([rows, np.ones((len(rows), 1))]), np.vstack([means, views[1]])
            expected = _expected(run, x[heard.ids] @ matrix.T + bias)
            found.append(ToldSum(heard.ids, rows, expected, means))
    return found


def _expected(run: AuditedRun, scores: Matrix) -> Matrix:
    """By what a silo's own scores (b, c) move derivatives from where they are at scores of zero, whatever the label."""
    loss, own = unweighted(run.task.loss), torch.from_numpy(scores)
    y = torch.zeros_like(true_labels(run)[: len(own)]) if run.data.target == "multiclass" else _zeros(run, own)
    found: Matrix = (loss.derivative(own, y) - loss.derivative(torch.zeros_like(own), y)).numpy()
    return found


def _zeros(run: AuditedRun, own: Tensor) -> Tensor:
    return torch.zeros_like(own) if run.data.target == "multilabel" else torch.zeros_like(own[:, 0])


def _by_kriging(run: AuditedRun, equations: Equations) -> tuple[Matrix, dict[str, float]]:
    """What labels make of derivatives (n, c), and the figures of it; for classes also as bits."""
    every = equations
    if equations.repeats:  # some rounds tell the same, and are solved for exactly
        equations = equations.spread(DENSE)
    values = np.concatenate(equations.values)
    classes = run.data.target in ("binary", "multiclass")
    told = 2 * float(np.sqrt((equations.values[0] ** 2).mean())) or 1.0  # the more the columns tell, the larger
    sizes = (1.0,) if classes else tuple(told / 2**k for k in range(5))  # of classes: a share less 0 or 1
    size, prior = choose_prior(equations, values, sizes)
    found, common = (size * one for one in krige(equations, values / size, prior))
    figures = figures_of(run, found, equations.seen)
    for after, few in _early(every).items():
        early = _first(few) if len(few.ids) == 1 else size * krige(few, np.concatenate(few.values) / size, prior)[0]
        figures |= {f"{name}{after}": value for name, value in figures_of(run, early, few.seen).items()}
    count = values.shape[1]
    if classes and dense(equations) and few_enough(equations.samples, count):
        by, z = likelihood(equations, values, prior)
        shift = 0.5 - 1 / max(2, count)  # bits are 1/2 - y, and the derivatives of c classes 1/c - y
        z, common = z + shift * by.sum(axis=1)[:, None], common + shift
        odds = [bits(by, *of) for of in zip(z.T, common.T, strict=True)]
        if all(one is not None for one in odds):
            as_bits = figures_of(run, -np.array(odds, dtype=np.float64).T, equations.seen)
            figures |= {f"{name} as bits": value for name, value in as_bits.items()}
    return found, figures


def _early(equations: Equations) -> dict[str, Equations]:
    """The equations of the first rounds alone, by what is said of figures from them."""
    found = {" after the first round": 1, " after 10 rounds": 10}
    return {after: equations.until(rounds) for after, rounds in found.items() if rounds < len(equations.ids)}


def _first(equations: Equations) -> Matrix:
    """The least derivatives (n, c) that explain what the first round told."""
    found = np.zeros((equations.samples, equations.values[0].shape[1]))
    found[equations.ids[0]] = equations.columns[0] @ equations.values[0]
    return found


def _beside(run: AuditedRun, told: list[ToldSum], equations: Equations) -> dict[str, float]:
    """Chance, and the least-squares fit of the silo's columns to the true labels, batch by batch where these stay."""
    wanted = as_numbers(run)
    batches = {one.ids.tobytes(): one for one in told}
    divided = sum(len(one.ids) for one in batches.values()) == len(equations.seen)
    fitted = np.zeros(wanted.shape)
    if divided:
        for one in batches.values():
            fitted[one.ids] = one.rows @ np.linalg.lstsq(one.rows, wanted[one.ids], rcond=None)[0]
    else:
        rows = np.zeros((len(wanted), told[0].rows.shape[1]))
        for one in told:
            rows[one.ids] = one.rows
        here = equations.seen
        fitted[here] = rows[here] @ np.linalg.lstsq(rows[here], wanted[here], rcond=None)[0]
    found = chance(true_labels(run).numpy()[equations.seen], run.data.target)
    for after, few in {"": equations, **_early(equations)}.items():  # each beside what is told of the same samples
        found |= columns_alone(run, fitted, few.seen, after)
    return found


def _by_integers(run: AuditedRun, first: ToldSum, target: str, silo: int) -> AttackFindings:
    """From scores of zero the first round tells sums over labels that are 0 or 1, exactly."""
    start = run.again.weights[0]
    if any(bool(weights.any()) for weights in start):
        return AttackFindings(
            INTEGERS, target, why="the first scores are not zero, so that sums are not of whole labels"
        )
    if len(first.ids) > LATTICE_ROWS:
        why = f"not tried: {len(first.ids):,} rows in the first batch, the search takes at most {LATTICE_ROWS}"
        return AttackFindings(INTEGERS, target, why=why)
    found = search(first.rows, first.means[:, 0], run.config.privacy.point, run.config.run.precision)
    y = true_labels(run).numpy()[first.ids]
    beside = chance_and_columns(run, (silo,), first.ids)
    figures, remark = {"accuracy": beside["accuracy, chance"]}, "no solution"
    if found is not None:
        labels, solutions = found
        figures = {"accuracy": float(((labels > 0.5) == y).mean())}
        remark = f"{len(y)} labels of the first batch; sums that {solutions:,} choices of labels explain"
    knows = "its own rows, its first gradient, and that all scores begin at zero"
    return AttackFindings(INTEGERS, target, figures, beside, knows, "batches of 512 and more", remark=remark)


def _alone(
    run: AuditedRun, told: list[ToldSum], equations: Equations, target: str, of_all: dict[str, float]
) -> AttackFindings:
    """Samples whose direction no other of their batch has: their derivative is told, and its sign is the label."""
    right: dict[int, bool] = {}
    if run.data.target not in ("binary", "multiclass"):
        return AttackFindings(ALONE, target, why="not tried for labels that are no classes")
    y = true_labels(run).numpy()
    for t, (ids, columns) in enumerate(zip(equations.ids, equations.columns, strict=True)):
        for i in np.flatnonzero((columns**2).sum(axis=1) >= _ALONE).tolist():
            derivative = torch.from_numpy(columns[i] @ equations.values[t] + told[t].expected[i])
            right.setdefault(int(ids[i]), bool(read_labels(derivative[None], run.data.target)[0] == y[ids[i]]))
    figures = {"samples": float(len(right))}
    if right:
        figures["accuracy"] = sum(right.values()) / len(right)
    lowers = "leaving such samples out, or merging rare categories, before batches are drawn"
    return AttackFindings(ALONE, target, figures, {"samples, chance": 0.0} | of_all, _KNOWS, lowers)
