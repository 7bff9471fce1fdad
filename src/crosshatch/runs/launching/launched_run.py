"""A launched run as its launcher sees it: it starts the processes, puts their figures into the run's folder, and ends.

Processes train and evaluate by themselves. The launcher reads what the judge has written and what everybody has sent,
adds simulated and real seconds, and at the end has the model from the states that hubs or agents have stored.
"""

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torch import Tensor

from crosshatch.errors import DivergenceError, RunError
from crosshatch.meter import Meter
from crosshatch.parties.line import Name
from crosshatch.parties.party import Party
from crosshatch.parties.recovery.packed_state import unpack
from crosshatch.parties.seeing_all import best_of_parties, model_of, total
from crosshatch.runs.best_round import BestRound
from crosshatch.runs.directory import RunDirectory
from crosshatch.runs.evaluating.lines import BROKEN, CLOSED, LINES, SENT, GrowingLines, read_lines, sent_by
from crosshatch.runs.evaluating.simulated_time import CountedRun
from crosshatch.runs.files import writing
from crosshatch.runs.launching.party_processes import Children
from crosshatch.runs.launching.process_plan import PartyProgress
from crosshatch.runs.own_parts.part_files import PartFiles
from crosshatch.runs.prepare import Prepared
from crosshatch.runs.stopping import Stop
from crosshatch.runs.summary import further_costs, summarise
from crosshatch.runs.trained.judged import keep_scores
from crosshatch.runs.trained.write_model import write_model
from crosshatch.runs.watcher import Outcome, Watcher
from crosshatch.runtime.store import Store
from crosshatch.simulator.divergence import Divergence, Growth

_LOOK = 0.05  # seconds between two looks


@dataclass
class LaunchedRun:
    """`homes` are the folders of the parties, `judge` finds all figures, their states belong to the run `run_id`."""

    prepared: Prepared
    directory: RunDirectory
    files: PartFiles
    watcher: Watcher
    children: Children
    parties: Mapping[Name, Party]
    homes: Mapping[Name, Path]
    judge: Name
    run_id: str
    rows: list[dict[str, Any]] = field(default_factory=list)
    evaluating: Meter = field(default_factory=Meter)
    _before: float = 0.0  # seconds of earlier starts

    def __post_init__(self) -> None:
        """From what the folder has, if it was stopped before."""
        self.config, self.simulator = self.prepared.config, self.prepared.simulator
        self._counted = CountedRun(self.prepared)
        self.rows = list(read_lines(self.directory.metrics)) if self.directory.metrics.is_file() else []
        self._before = self.rows[-1]["real_seconds"] if self.rows else 0.0
        self._began = time.monotonic()
        self._found = GrowingLines(self.homes[self.judge] / LINES)
        counting = [home for name, home in self.homes.items() if self.parties[name].follows is None]
        self._sent = [GrowingLines(home / SENT) for home in counting]

    def go(self, stop: Stop) -> Outcome:
        """Until all processes have come to their end, or somebody asks to stop: then after the round in hand."""
        self.children.start()
        asked, agreed = False, False
        while not self.children.have_ended:
            self.children.check()
            self._look()
            if stop.requested and not asked:
                asked = True
                self.children.hold()
            agreed = agreed or (asked and self.children.agree() is not None)
            time.sleep(_LOOK)
        self._look()
        return self._end()

    def _look(self) -> None:
        told = self.children.told
        if told:
            self.watcher.advance(min(one.round for one in told.values()))
            self.watcher.under_way(sum(one.bytes for one in told.values()), waited_for(told))
        self._found.look()
        self._found.forget_until(self.rows[-1]["round"] if self.rows else -1)
        for done, line in self._found.rows.items():
            if BROKEN not in line:
                sent = sent_by(self._sent, done)
                if sent is None:
                    return  # some party has not come so far
                self._note(line, *sent)

    def _note(self, line: Mapping[str, Any], sent: Meter, evaluating: Meter) -> None:
        counted, seconds = self._counted.after(line["round"]), round(self._before + time.monotonic() - self._began, 3)
        self.evaluating = evaluating
        row = {
            "iteration": counted.iteration, "round": line["round"], "bytes": sent.bytes, "messages": sent.messages,
            **further_costs(counted), "sim_seconds": counted.seconds, "real_seconds": seconds, "wall_seconds": seconds,
            **line,
        }  # fmt: skip
        self.directory.append_metrics(row)
        self.directory.keep_metrics()
        self.rows.append(row)
        self.watcher.evaluated(row)

    def _end(self) -> Outcome:
        """The model from the states that the parties have stored, and the summary where the run is over."""
        rounds = self._load()
        broken = [one for one in read_lines(self.homes[self.judge] / LINES) if BROKEN in one]
        diverged = self._divergence(broken[0] if broken else None)
        if broken and not self.rows:
            self.simulator.objective()  # says what is wrong with the data or the blocks
        if self.rows:  # else it was stopped before anybody had looked at the model
            self._write_models(rounds)
        if not all(party.ended or party.follows for party in self.parties.values()):
            return Outcome(self.directory.path, finished=False, round=rounds)
        if self.config.evaluate.keep_scores and not broken:
            weights = self._best()[1] or model_of(self.parties)
            with writing(self.directory.path):
                keep_scores(self.directory.path, self.simulator, weights, seed=self.config.run.seed)
        summary = self._summary(rounds, diverged)
        self.directory.write_json(self.directory.summary, summary)
        if diverged is not None and (broken or self.config.run.on_divergence == "stop"):
            raise DivergenceError(f"{diverged.why}; the run is kept in {self.directory.path}")
        losses = (self.rows[0]["train_loss"], self.rows[-1]["train_loss"])
        advice = self.simulator.advise(rounds) if losses[1] > losses[0] else ""
        return Outcome(self.directory.path, True, rounds, summary, losses=losses, advice=advice)

    def _load(self) -> int:
        """Have our copies of the parties be where theirs have ended; after how many rounds that is."""
        for name, home in self.homes.items():
            written = Store(home).read()
            if written is None:
                raise RunError(f"{home} has no state of {name}: it was removed, launch the run again")
            self.parties[name].load(unpack(written, run=self.run_id, party=name).value)
        return min(party.round for party in self.parties.values())

    def _divergence(self, broken: Mapping[str, Any] | None) -> Divergence | None:
        if broken is not None:
            done = broken["round"]
            why = f"round {done}: {broken[BROKEN]} no longer finite, training diverged: {self.simulator.advise(done)}"
            return Divergence(done, why)
        if not self.rows:
            return None
        rule = Growth(
            self.rows[0]["train_loss"], self.simulator.zero_objective(self.config.evaluate.train_samples)
        )  # fmt: skip
        found = (rule.notice(row["train_loss"], row["round"], self.simulator.advise) for row in self.rows)
        return next(filter(None, found), None)

    def _best(self) -> tuple[BestRound | None, tuple[Tensor, ...]]:
        best = BestRound.of(self.config, self.rows)
        if best is not None:
            best.weights = best_of_parties(self.parties)
        return best, () if best is None else best.weights

    def _write_models(self, rounds: int) -> None:
        best, kept = self._best()
        of = self.simulator, self.config, self.files, self.rows[-1]
        write_model(self.directory.model, *of, weights=model_of(self.parties), done=rounds)
        if best is not None and kept:
            write_model(self.directory.best_model, *of, best)

    def _summary(self, rounds: int, diverged: Divergence | None) -> dict[str, Any]:
        counted, (best, _) = self._counted.after(rounds), self._best()
        chosen = None if best is None or best.row is None else best.describe()
        counted.meter.load(total(party.meter for party in self.parties.values()).snapshot())
        summary = summarise(self.config, self.simulator, self.rows, {}, diverged, chosen, counted=counted)
        summary["real_seconds"] = self.rows[-1]["real_seconds"]
        summary["processes"] = len({home.parent for home in self.homes.values()})
        summary["evaluation_bytes"] = self.evaluating.bytes
        leakage = self.prepared.leakage
        summary |= {} if leakage is None else {"leakage": leakage.table()}
        summary |= json.loads((self.homes[self.judge] / CLOSED).read_bytes())
        return summary | ({"parts": self.files.hashes} if self.files.hashes else {})


def waited_for(told: Mapping[Name, PartyProgress]) -> tuple[Name, float] | None:
    """Who is waited for, and for how many seconds: of those that others wait for one that waits for nobody itself."""
    longest: dict[Name, float] = {}
    for one in told.values():
        if one.waits_for is not None:
            longest[one.waits_for] = max(one.seconds, longest.get(one.waits_for, 0.0))
    free = [name for name in longest if name not in told or told[name].waits_for is None]
    return max(((name, longest[name]) for name in free or longest), key=lambda pair: pair[1], default=None)
