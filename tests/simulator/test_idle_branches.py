"""A branch with nobody at work keeps its block, however clients are weighed."""

from __future__ import annotations

from typing import Any, get_args

import numpy as np
import pytest
import torch

from crosshatch.channels import Channels
from crosshatch.protocol.message_contents import Call
from crosshatch.protocol.names import ClientWeights
from crosshatch.simulator.vertical.batch import Batch, Holdings
from crosshatch.simulator.vertical.blocks import Blocks
from crosshatch.simulator.vertical.branches import Branches
from crosshatch.simulator.vertical.on_the_way import OnTheWay

IDS = np.arange(4)


@pytest.mark.parametrize("weights", get_args(ClientWeights))
def test_a_branch_with_nobody_at_work_keeps_its_block(weights: Any) -> None:
    """Two branches of two clients each, of which those of the first are at work, one sample each."""
    at_work = IDS[:2]
    batch = Batch(0, (at_work,), (at_work,), ((Holdings(None, np.ones(2, dtype=np.int64)),),), all_in_order=False)
    before = Blocks((torch.zeros(1),), branches=(torch.tensor([[1.0], [5.0]]),))
    moved = {0: torch.tensor([[2.0], [4.0]])}
    branches = Branches((2,), (4,), [IDS], OnTheWay(Channels({}, 0), samples=4))
    after = branches.average(before, moved, batch, weights, depth=1, call=Call("average", 0))
    assert after.branches[0].tolist() == [[3.0], [5.0]]
