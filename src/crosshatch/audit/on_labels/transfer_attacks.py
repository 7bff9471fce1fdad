"""The attacks on labels in a transfer task: by the components that travel in clear, or by the gradients that B reads.

In clear A tells B the rows y Phi, all of them one vector or its opposite. Encrypted, 2 n times B's gradient is
- J^T y + J^T s / 2 - 2 g G^T u_A, where G are the derivatives of u_B by B's parameters, J those of s = Phi . u_B: as
many sums over the signs y of the labels in every local step, blurred by what the alignment adds of A's embeddings. B
knows its rows and its block, so that with a Gaussian prior of y and of u_A, which hardly moves, it is a linear solve.
How large u_A is, how large its mean over samples, and how far the sums are rounded, is what makes them likeliest.
"""

from collections.abc import Iterator

import numpy as np
import torch
from scipy.linalg import solve_triangular
from scipy.optimize import minimize
from torch import Tensor

from crosshatch.audit.attack_findings import AttackFindings
from crosshatch.audit.audited_run import AuditedRun
from crosshatch.audit.on_labels.as_bits import bits, few_enough
from crosshatch.audit.on_labels.label_leak import chance_and_columns, figures_of_two
from crosshatch.audit.other_data import Matrix

BY_COMPONENT = "labels by components"
BY_SUMS = "labels by sums over rounds"
_FITTED = 600  # sums by which it is found how large all else is beside the labels
_STARTS = (1e-6, 1e-3)  # of each part of it, in squares
_STEPS = 150
_LEAST = 1e-13  # of the labels' share
_NUMBERS = 4 * 10**7  # of all sums over all samples and embeddings, at most; later local steps are left out beyond


def attack_transfer(run: AuditedRun) -> Iterator[AttackFindings]:
    """By B, which has no labels."""
    (b,) = (j for j in range(2) if not run.task.holds_head(j))
    target = f"labels, by {run.task.names[b]}"
    if not run.labels_held:
        yield AttackFindings(BY_COMPONENT, target, why="labels are shared: every silo has them")
    elif run.config.privacy.encrypts:
        yield _by_sums(run, b, target)
    else:
        yield _by_components(run, b, target)


def _by_components(run: AuditedRun, b: int, target: str) -> AttackFindings:
    y = run.data.y_train.numpy()
    votes = np.zeros(len(y))
    for heard in run.heard:
        if heard.exchange == "derivatives":
            signed = heard.values[:, heard.values.shape[1] // 2 :].double().numpy()
            side = np.sign(signed @ signed[0])
            flip = np.sign(votes[heard.ids] @ side) or 1.0  # rounds are matched by the samples they have in common
            votes[heard.ids] += flip * side
    seen = np.flatnonzero(votes)
    right = float(((votes[seen] > 0) == y[seen]).mean())
    figures = {"accuracy up to which is which": max(right, 1 - right)}
    knows, lowers = "the components it was sent", 'loss = "taylor_logistic" with privacy.encryption = "paillier"'
    beside, remark = chance_and_columns(run, (b,), seen), f"{len(seen):,} samples"
    return AttackFindings(BY_COMPONENT, target, figures, beside, knows, lowers, remark=remark)


def _by_sums(run: AuditedRun, b: int, target: str) -> AttackFindings:
    """The mean of the labels' signs given all sums, all else as large as is likeliest, and then labels as bits."""
    y = run.data.y_train.double().numpy()
    by, of_others, sums, steps = _sums(run, b)
    seen = np.flatnonzero(by.any(axis=0))
    in_common = of_others.reshape(len(by), len(y), -1).sum(axis=1)  # embeddings have a mean
    told, beside_labels = by @ by.T, _beside_labels(by, (of_others @ of_others.T, in_common @ in_common.T), sums)
    _, root, z = _root(told + beside_labels, sums)
    signs = by.T @ solve_triangular(root, z, lower=True, trans=1)
    figures = figures_of_two(y[seen], signs[seen])
    if few_enough(len(seen), 1):
        _, root, z = _root(beside_labels, sums)
        white = solve_triangular(root, by[:, seen], lower=True)
        odds = bits(-2 * white, z, np.full(len(seen), -signs[seen].mean() / 2))
        if odds is not None:
            figures |= {f"{name} as bits": value for name, value in figures_of_two(y[seen], odds).items()}
    beside = chance_and_columns(run, (b,), seen)
    knows = (
        "its own rows and block, the gradients it read, which samples were in each batch, and the class mean of every "
        "round, whose square its gradients tell and which it has with the model"
    )
    lowers = "larger batches, fewer hidden units, local steps and rounds"
    remark = f"{len(sums):,} sums over {len(seen):,} labels, from {steps:,} local steps"
    return AttackFindings(BY_SUMS, target, figures, beside, knows, lowers, remark=remark)


def _beside_labels(by: Matrix, parts: tuple[Matrix, ...], sums: Matrix) -> Matrix:
    """The covariance (N, N) of all but the labels: parts of it, and rounding, as large as makes the sums likeliest."""
    size = float((by**2).sum()) / len(by)
    rounding = size * np.eye(len(by))
    scaled = [rounding, *(part * size * len(by) / np.trace(part) for part in parts if part.any())]
    pick = np.unique(np.linspace(0, len(by) - 1, _FITTED).astype(np.int64))
    told, few = by[pick] @ by[pick].T, [part[np.ix_(pick, pick)] for part in scaled]

    def all_parts(logs: Matrix, of: list[Matrix]) -> Matrix:
        found: Matrix = np.tensordot(np.exp(logs), of, 1) + _LEAST * of[0]
        return found

    def unlikely(logs: Matrix) -> float:
        try:
            return _root(told + all_parts(logs, few), sums[pick])[0]
        except np.linalg.LinAlgError:
            return np.inf

    tried = (np.full(len(few), np.log(start)) for start in _STARTS)
    fits = [minimize(unlikely, start, method="Nelder-Mead", options={"maxfev": _STEPS}) for start in tried]
    return all_parts(min(fits, key=lambda fit: float(fit.fun)).x, scaled)


def _root(covariance: Matrix, sums: Matrix) -> tuple[float, Matrix, Matrix]:
    """How unlikely sums (N,) are under a covariance (N, N), its root, and the sums over it."""
    root: Matrix = np.asarray(np.linalg.cholesky(covariance), dtype=np.float64)
    part: Matrix = solve_triangular(root, sums, lower=True)
    return float(part @ part / 2 + np.log(np.diag(root)).sum()), root, part


def _sums(run: AuditedRun, b: int) -> tuple[Matrix, Matrix, Matrix, int]:
    """Coefficients of the labels' signs (N, n) and A's embeddings (N, n d) in all sums, these (N,), and local steps."""
    x, samples = run.data.silos[b].train, len(run.data.y_train)
    of_labels: list[Matrix] = []
    of_others: list[Matrix] = []
    sums: list[Matrix] = []
    for heard in run.heard:
        if heard.exchange != "gradients" or heard.receivers != (b,):
            continue
        gradient, block = heard.values.double()
        mean = run.task.head_in(run.again.weights[heard.round])
        assert mean is not None
        rows, phi = x[torch.from_numpy(heard.ids)].double(), mean.double()
        if sums and (len(sums) + 1) * len(gradient) * samples * len(phi) > _NUMBERS:
            break

        def embed(flat: Tensor, rows: Tensor = rows) -> Tensor:
            return run.task.embed(b, flat, rows)

        slopes = torch.func.jacrev(embed)(block).movedim(-1, 0)  # (p, n, d)
        mine, theirs = np.zeros((len(gradient), samples)), np.zeros((len(gradient), samples, len(phi)))
        mine[:, heard.ids], theirs[:, heard.ids] = (slopes @ phi).numpy(), slopes.numpy()
        of_labels.append(mine)
        of_others.append(theirs.reshape(len(gradient), -1))
        sums.append(((slopes @ phi) @ (embed(block) @ phi) / 2 - 2 * len(rows) * gradient).numpy())
    return np.concatenate(of_labels), np.concatenate(of_others), np.concatenate(sums), len(sums)
