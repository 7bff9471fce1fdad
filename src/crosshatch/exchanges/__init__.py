"""What an algorithm may ask of other parties, and what it declares of itself.

Meanings alone: the numbers are in `simulator/vertical`, each party's half in `parties/roles`; on graphs `tokens.py` and
`duals.py`, `simulator/graph` and `parties/agents`. To add an exchange: "How to add" in CONTRIBUTING.md.
"""

from crosshatch.exchanges.algorithm import Algorithm
from crosshatch.exchanges.declared import (
    Declared,
    declared,
    on_duals,
    on_federation,
    on_silos,
    on_tokens,
)
from crosshatch.exchanges.drawing import DrawsBatches, batch_source, with_division
from crosshatch.exchanges.duals import DualAlgorithm, DualFederation, Duals
from crosshatch.exchanges.grouped import Grouped
from crosshatch.exchanges.planned import Planned, declared_instance, declaring
from crosshatch.exchanges.tokens import TokenAlgorithm, TokenFederation, Tokens
from crosshatch.exchanges.vertical import (
    Batch,
    Blocks,
    Embeddings,
    Federation,
    Frozen,
    Memory,
    Number,
    Within,
)
from crosshatch.local.local_steps import LocalSteps
from crosshatch.protocol.names import ClientWeights

__all__ = [
    "Algorithm", "Batch", "Blocks", "ClientWeights", "Declared", "DrawsBatches", "DualAlgorithm", "DualFederation",
    "Duals", "Embeddings", "Federation", "Frozen", "Grouped", "LocalSteps", "Memory", "Number", "Planned",
    "TokenAlgorithm", "TokenFederation", "Tokens", "Within", "batch_source", "declared", "declared_instance",
    "declaring", "on_duals", "on_federation", "on_silos", "on_tokens", "with_division",
]  # fmt: skip
