"""Simulated seconds of a run that others train: the simulator's own accounting, with blocks that compute nothing.

What messages and steps cost follows from shapes, numbers of samples and the seed, not from values. So the blocks are
hollow: as many numbers, outputs as wide, and no work. A text of a user's own may decide by values, and on a graph
blocks that are not linear begin with outputs: those are simulated as they are.
"""

from dataclasses import replace

import torch
from torch import Tensor, nn

from crosshatch.data.federated import FederatedData, SiloData
from crosshatch.exchanges import on_silos
from crosshatch.local.read_chain import as_chain
from crosshatch.own_parts import is_own
from crosshatch.runs.config import Config
from crosshatch.runs.config_names import algorithm_name
from crosshatch.runs.prepare import Prepared, make_simulator
from crosshatch.simulator.simulator import Simulator
from crosshatch.task.fusion import Head
from crosshatch.task.probe import ROWS
from crosshatch.task.task import Task

_SMALL = 1e-3  # so that no step size is too large


class CountedRun:
    """A simulator that is run as far as it is asked for."""

    def __init__(self, prepared: Prepared) -> None:
        config, whole = prepared.config, prepared.simulator
        data, task, graph = whole.data, whole.task, not on_silos(whole.algorithm)
        if not needs_values(config, whole):
            data, task = hollow(data, task, graph=graph)
        self._simulator = make_simulator(config, config.algorithm, data, task)

    def after(self, rounds: int) -> Simulator:
        """It has done so many rounds, or more if it was asked for more before."""
        while self._simulator.round < rounds:
            self._simulator.run_round()
        return self._simulator


def needs_values(config: Config, simulator: Simulator) -> bool:
    """Whether what a round costs may depend on the model's numbers."""
    if on_silos(simulator.algorithm):
        return is_own(algorithm_name(config.algorithm))
    return not are_linear(simulator.task)


def are_linear(task: Task) -> bool:
    """Whether all blocks' outputs are linear in their parameters."""
    chains = [as_chain(block) for block in task.blocks]
    return all(chain is not None and len(chain) == 1 and chain[0].activation == "none" for chain in chains)


def hollow(data: FederatedData, task: Task, *, graph: bool = False) -> tuple[FederatedData, Task]:
    """The same federation with blocks (and a head) that have their numbers and widths alone, and rows for them.

    On a `graph` blocks do not travel, and are linear.
    """
    widths = task.check_fit([silo.train[:ROWS] for silo in data.silos], data.classes)
    silos, blocks = [], []
    for silo, block, width in zip(data.silos, task.blocks, widths, strict=True):
        empty = width == 0 or not any(one.requires_grad for one in block.parameters())
        silos.append(silo if empty else _rows(silo, width))
        blocks.append(block if empty else nn.Linear(width, width) if graph else _Hollow(block, width))
    fusion, head, holder = task.fusion, task.head, task.head_holder
    if head is not None and holder is not None and task.transfer is None:
        fusion = Head(_Hollow(head, task.loss.scores(data.classes), joined=True), holder)
    alone = data.alone
    if alone is not None:
        width = widths[[silo.name for silo in data.silos].index(alone.silo)]
        alone = replace(alone, x=torch.full((len(alone.y), width), _SMALL))
    data = replace(data, silos=tuple(silos), y_validation=None, alone=alone)
    return data, replace(task, blocks=tuple(blocks), fusion=fusion)


def _rows(silo: SiloData, width: int) -> SiloData:
    train, test = (torch.full((len(rows), width), _SMALL) for rows in (silo.train, silo.test))
    return replace(silo, train=train, test=test, validation=None)


class _Hollow(nn.Module):
    """Outputs that are its inputs, whatever its numbers are; `joined`: so many of the first input."""

    def __init__(self, like: nn.Module, width: int, *, joined: bool = False) -> None:
        super().__init__()
        numbers = list(like.parameters())
        self.trained = nn.Parameter(torch.cat([one.detach().flatten() for one in numbers if one.requires_grad]))
        kept = [one.detach().flatten() for one in numbers if not one.requires_grad]
        self.kept = nn.Parameter(torch.cat(kept), requires_grad=False) if kept else None
        self.width, self.joined = width, joined

    def forward(self, x: Tensor) -> Tensor:
        rows = x[:, :1].expand(len(x), self.width) if self.joined else x
        return rows + 0 * self.trained[:1]
