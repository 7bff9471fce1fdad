"""The judge of a launched run, at the label's holder: the figures of every evaluation, and whether the run ends.

What it finds out it writes into its party's folder: a line per evaluation, and at the end what is said of the test rows
beyond single numbers. A round that is run again after a crash gives the same line again; of a round's lines the last
one counts.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from crosshatch.data.federated import FederatedData, SiloData
from crosshatch.parties.evaluation.text import Found, Scored, Verdict
from crosshatch.report.measures import Target, TargetsAhead
from crosshatch.runs.best_round import BestRound, ends_run, on_rows
from crosshatch.runs.config import Config
from crosshatch.runs.evaluating.lines import BROKEN, CLOSED, LINES, add_line
from crosshatch.runs.evaluating.own_test_rows import Briefing
from crosshatch.runs.evaluating.some_rows import SomeRows
from crosshatch.runs.files import write_whole
from crosshatch.runs.trained.judged import judge_scores
from crosshatch.simulator.client_metrics import spread_over_clients
from crosshatch.simulator.divergence import Growth
from crosshatch.task.directions import VALIDATION, directions
from crosshatch.task.losses import Loss
from crosshatch.task.metrics import evaluate
from crosshatch.task.own_metric import find_metrics


@dataclass
class RunJudge:
    """`rows` are the lines so far that have figures; all that it decides follows from them."""

    config: Config
    loss: Loss
    folder: Path
    briefing: Briefing
    rows: list[dict[str, Any]] = field(default_factory=list)
    zero: float = 0.0

    def __post_init__(self) -> None:
        """The metrics are read once: a file may change meanwhile."""
        self.metrics = find_metrics(self.config.evaluate.metrics or ())

    def see(self, found: Found, done: int) -> Verdict:
        """A line of figures, and what follows from it."""
        broken = _broken(found)
        if broken is not None:
            self._write({"round": done, BROKEN: broken})
            return Verdict.END
        self.zero = found.zero_objective
        test, labels = found.held_out.part("test")

        def measure(drawn: Tensor | None) -> dict[str, float]:
            rows = slice(None) if drawn is None else drawn
            return self._measure(test[rows], labels[rows], found.objective)

        some = SomeRows.of(self.config, labels)
        row = {"round": done, "train_loss": found.objective, **some.measure(measure, done, self._ahead)}
        if found.held_out.validation:
            scores, y = found.held_out.part("validation")
            kept = evaluate(on_rows(self.metrics), scores, y, self.loss)
            row |= {f"{VALIDATION}{name}": value for name, value in kept.items()}
        self.rows.append(row)
        if self._is_over:
            self.rows[-1] = row = {**some.complete(row, measure)}
        self._write(row)
        best = self._best
        verdict = Verdict.BEST if best is not None and best.row is row else Verdict.GO_ON
        return verdict | (Verdict.END if self._is_over else Verdict.GO_ON)

    def close(self, scored: Scored, done: int) -> None:
        """Noise, decisions and clients, of the model that the run ends with."""
        if not torch.isfinite(scored.scores).all():
            return
        test, validation = scored.part("test"), scored.part("validation") if scored.validation else None
        found = judge_scores(self.metrics, self.loss, test, validation)
        best = self._best
        if self.briefing.silos:
            known = directions(self.config.evaluate.higher_is_better)
            spread = spread_over_clients(_clients(self.briefing, test[1]), self.metrics, test[0], self.loss, known)
            at = done if best is None or best.row is None else best.row["round"]
            for name, called, *_ in self.briefing.silos:
                for metric in spread[name]["metrics"].values() if name in spread else ():
                    for one in metric["worst"]:  # by its number, where groups are not known
                        one["client"] = called[int(one["client"].rpartition("/")[2])]
            found["per_client"] = {"round": at, "silos": spread}
        write_whole(self.folder / CLOSED, json.dumps(found, allow_nan=False).encode())

    def state(self) -> dict[str, Any]:
        return {"rows": [dict(row) for row in self.rows], "zero": self.zero}

    def load(self, state: Mapping[str, Any]) -> None:
        self.rows, self.zero = [dict(row) for row in state["rows"]], state["zero"]

    def _measure(self, scores: Tensor, y: Tensor, objective: float) -> dict[str, float]:
        found = evaluate(on_rows(self.metrics), scores, y, self.loss) if on_rows(self.metrics) else {}
        if self.briefing.optimum is not None:
            best, zero = self.briefing.optimum
            span = zero - best
            found["suboptimality"] = (objective - best) / span if span > 0 else objective - best
        return {name: found[name] for name in (one if isinstance(one, str) else one.name for one in self.metrics)}

    @property
    def _ahead(self) -> tuple[Target, ...]:
        evaluate = self.config.evaluate
        return TargetsAhead(evaluate.parsed_targets, evaluate.smooth).after(self.rows)

    @property
    def _best(self) -> BestRound | None:
        return BestRound.of(self.config, self.rows)

    @property
    def _is_over(self) -> bool:
        """All targets are reached, the training loss has grown or patience is lost, where that ends the run."""
        last, rule = self.rows[-1], Growth(self.rows[0]["train_loss"], self.zero)
        grown = rule.notice(last["train_loss"], last["round"], lambda _: "") is not None
        return ends_run(self.config.run, self._best, self._ahead, grown=grown)

    def _write(self, row: Mapping[str, Any]) -> None:
        add_line(self.folder / LINES, row)


def _broken(found: Found) -> str | None:
    validation, _ = found.held_out.part("validation")
    test, _ = found.held_out.part("test")
    if not torch.isfinite(validation).all():
        return "a validation score is"
    if not isfinite(found.objective):
        return "the training loss is"
    return None if torch.isfinite(test).all() else "a test score is"


def _clients(briefing: Briefing, y: Tensor) -> FederatedData:
    """Who holds which test row, without any row."""
    nothing = torch.zeros(0, 1)
    silos = tuple(
        SiloData(
            name, nothing, torch.zeros(len(y), 1), (), np.empty(0, dtype=np.int64), len(called),
            test_owners=np.array(owners), client_names=names,
        )
        for name, called, owners, names in briefing.silos
    )  # fmt: skip
    return FederatedData(silos, y[:0], y, "binary", 2)
