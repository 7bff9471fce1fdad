"""What is not launched: said before anything is written, with the reason and what to do."""

from __future__ import annotations

from crosshatch.errors import ConfigError
from crosshatch.exchanges import declared
from crosshatch.runs.prepare import Prepared
from crosshatch.schedules import Adaptive


def require_launchable(prepared: Prepared) -> None:
    """Refuse what does not run as processes here."""
    config, algorithm, data = prepared.config, prepared.simulator.algorithm, prepared.simulator.data
    known, evaluate = declared(algorithm), config.evaluate
    asks_best = "suboptimality" in (evaluate.metrics or ())
    refused = {
        "algorithm 'central' has no parties": known.central,
        "JFL's pairs are processes that nobody would start": known.pairs,
        "federation.branches are processes that nobody would start": bool(data.branches),
        "adaptive step sizes need the gradient of all parties together": isinstance(algorithm.step_size, Adaptive),
        "privacy.encryption is not launched yet": config.privacy.encrypts,
        "recording messages needs those of all silos in one place, which no party has": config.run.record_messages,
        "evaluate.train_samples with the metric suboptimality, which is of all samples": asks_best
        and evaluate.train_samples is not None,
    }
    for why, applies in refused.items():
        if applies:
            raise ConfigError(f"crosshatch launch: {why}: use crosshatch train, which simulates it")
