"""The kinds of value that a party's state may hold beside tensors, arrays and plain data."""

from __future__ import annotations

from crosshatch.parties.agents.dual_role import Dual
from crosshatch.parties.agents.token_roles import Tokens
from crosshatch.parties.holdings.agreed import Batch
from crosshatch.parties.holdings.model import KnownOfOthers
from crosshatch.parties.holdings.values import Blocks, Embeddings, Frozen

KINDS = (Batch, Blocks, Dual, Embeddings, Frozen, KnownOfOthers, Tokens)
