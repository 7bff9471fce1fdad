"""What is recovered of a silo's rows where a condition of Theorem 1 fails, computed from the recorded messages.

A linear silo's message about sample i in round t is h = W_t x_i + b_t. With unknown weights rows are not unique;
with known weights of enough rounds, or known rows of other samples, they are, and of one feature little is open.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from crosshatch.audit.other_data import Matrix, relative
from crosshatch.protocol.batches import Ids
from crosshatch.simulator.listening import Heard

MOST_SAMPLES = 2000  # whose rows are solved for, one by one; and known rows at most
NEAR = 1e-3  # relative error of a row that counts as recovered
_RANK = 1e-13  # relative: singular values below are rounding
_FLAT = 1e-6  # relative: scores that differ by less tell nothing


@dataclass(frozen=True)
class Recovery:
    """What somebody gets who `knows` something besides the messages.

    `error`: of the rows that could be solved for, relative to their norm; `share`: of all samples that were tried,
    recovered to a thousandth. None: nothing could be computed, `remark` says why.
    """

    condition: str
    knows: str
    error: float | None = None
    share: float | None = None
    remark: str = ""


@dataclass(frozen=True)
class SentScores:
    """A silo's scores (n, c) about samples `ids` (n,), sent while it had the weights of number `moment`."""

    moment: int
    ids: Ids
    scores: Matrix


def sent_by(silo: int, messages: Sequence[Heard], *, turns: bool) -> list[SentScores]:
    """The first message of a silo in each round, and the weights it tells of: number t is before round t.

    Where silos take turns, exchange number u is before the turn of silo u: who comes earlier has moved already.
    """
    first: dict[int, Heard] = {}
    for heard in messages:
        if heard.sender == silo and heard.exchange == "share":
            first.setdefault(heard.round, heard)
    return [
        SentScores(r + int(turns and heard.use > silo), heard.ids, heard.values.double().numpy())
        for r, heard in first.items()
    ]


def with_known_weights(sent: Sequence[SentScores], weights: Mapping[int, tuple[Matrix, Matrix]], x: Matrix) -> Recovery:
    """Rows by least squares from the scores of all rounds and the weights (W (c, d), b (c,)) behind them."""
    found = _solve(sent, weights, x, np.unique(np.concatenate([one.ids for one in sent])))
    return found.as_recovery("weights known", "its weights in every round")


def with_known_rows(sent: Sequence[SentScores], x: Matrix, draw: np.random.Generator) -> Recovery:
    """The same of samples nobody knows, the weights of each round fitted to the rows of samples that are known."""
    condition = "rows known"
    seen = np.unique(np.concatenate([one.ids for one in sent]))
    known = np.sort(draw.choice(seen, size=min(len(seen) // 2, MOST_SAMPLES), replace=False))
    knows = f"the rows of {len(known):,} samples"
    fitted: dict[int, tuple[Matrix, Matrix]] = {}
    for one in sent:
        here = np.isin(one.ids, known)
        rows = np.hstack([x[one.ids[here]], np.ones((int(here.sum()), 1))])
        if len(rows) > x.shape[1] + 1:
            both: Matrix = np.linalg.lstsq(rows, one.scores[here], rcond=_RANK)[0].T.astype(np.float64)
            fitted[one.moment] = (both[:, :-1], both[:, -1])
    if not fitted:
        return Recovery(condition, knows, remark="no batch has more known rows than the silo has features")
    return _solve(sent, fitted, x, np.setdiff1d(seen, known)).as_recovery(condition, knows)


@dataclass(frozen=True)
class _Solved:
    """Rows (n, d) beside the true ones, and of which samples enough was sent to determine them."""

    rows: Matrix
    true: Matrix
    determined: npt.NDArray[np.bool_]

    def as_recovery(self, condition: str, knows: str) -> Recovery:
        off, size = np.linalg.norm(self.rows - self.true, axis=1), np.linalg.norm(self.true, axis=1)
        which = self.determined if self.determined.any() else np.ones_like(self.determined)
        few = len(off) - int(self.determined.sum())
        remark = f"{len(off):,} samples" + (f", {few:,} of them sent too rarely" if few else "")
        return Recovery(
            condition, knows, relative(self.rows[which], self.true[which]), float((off <= NEAR * size).mean()), remark
        )


def _solve(sent: Sequence[SentScores], weights: Mapping[int, tuple[Matrix, Matrix]], x: Matrix, wanted: Ids) -> _Solved:
    """Rows of the wanted samples, each by least squares from all scores sent of it."""
    wanted = wanted[:MOST_SAMPLES]
    equations: dict[int, list[tuple[int, int]]] = {int(i): [] for i in wanted}  # message and row in it
    for number, one in enumerate(sent):
        if one.moment in weights:
            for row, i in enumerate(one.ids.tolist()):
                if i in equations:
                    equations[i].append((number, row))
    together: dict[tuple[int, ...], list[int]] = {}  # samples that were in the same batches have one matrix
    for i, found in equations.items():
        together.setdefault(tuple(number for number, _ in found), []).append(i)
    rows, determined = np.zeros((len(wanted), x.shape[1])), np.zeros(len(wanted), dtype=bool)
    place = {int(i): at for at, i in enumerate(wanted)}
    for numbers, samples in together.items():
        if not numbers:
            continue
        left = np.vstack([weights[sent[n].moment][0] for n in numbers])
        right = np.array(
            [
                np.concatenate([sent[n].scores[row] - weights[sent[n].moment][1] for n, row in equations[i]])
                for i in samples
            ]
        )
        solution, _, rank, _ = np.linalg.lstsq(left, right.T, rcond=_RANK)
        here = [place[i] for i in samples]
        rows[here], determined[here] = solution.T, rank == x.shape[1]
    return _Solved(rows, x[wanted], determined)


def of_one_feature(sent: Sequence[SentScores], x: Matrix, *, standardised: bool) -> list[Recovery]:
    """The single column: up to scale and shift from scores alone, up to its sign where it is standardised."""
    found = _chain(sent)
    if found is None:
        why = "the scores of a batch never differed"
        return [Recovery("one feature", "nothing else", remark=why)]
    ids, column = found
    true = x[ids, 0]
    beside = np.column_stack([column, np.ones_like(column)])
    fitted = beside @ np.linalg.lstsq(beside, true, rcond=None)[0]
    error = relative(fitted, true)
    near = float((abs(fitted - true) <= NEAR * np.linalg.norm(true) / np.sqrt(len(true))).mean())
    upto = [Recovery("one feature", "nothing else", error, near, f"{len(ids):,} samples, up to scale and shift")]
    if standardised and len(ids) == len(x):
        plain = (column - column.mean()) / column.std()
        signed = plain if plain @ true >= 0 else -plain
        near = float((abs(signed - true) <= NEAR).mean())
        upto.append(Recovery("one feature", "that it is standardised", relative(signed, true), near, "up to the sign"))
    return upto


def _chain(sent: Sequence[SentScores]) -> tuple[Ids, Matrix] | None:
    """The column of all samples seen, up to one scale and shift: batches are fitted to each other by common samples."""
    known: dict[int, float] = {}
    for one in (*sent, *sent):  # twice: what had nothing in common with those before may have with those behind
        scores, ids = one.scores[:, 0], one.ids.tolist()
        common = [row for row, i in enumerate(ids) if i in known] if known else list(range(len(ids)))
        if len(common) == len(ids) and known:
            continue
        if not common or np.ptp(scores[common]) <= _FLAT * abs(scores).max():
            continue
        if known:
            beside = np.column_stack([scores[common], np.ones(len(common))])
            scores = (
                np.column_stack([scores, np.ones(len(ids))])
                @ np.linalg.lstsq(beside, np.array([known[ids[row]] for row in common]), rcond=None)[0]
            )
        known |= {i: float(value) for i, value in zip(ids, scores, strict=True) if i not in known}
    if not known:
        return None
    ids = np.array(sorted(known))
    return ids, np.array([known[i] for i in ids.tolist()])
