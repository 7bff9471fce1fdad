"""One silo's part of a trained model. It needs its own rows and nothing of any other silo."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from crosshatch.data.dataset import NewRows
from crosshatch.data.encoding.encode_part import Encoder, encode
from crosshatch.data.new_rows import part_of
from crosshatch.local.forward import fixed_batches, forward
from crosshatch.task.fusion import Sum
from crosshatch.task.losses import Squared
from crosshatch.task.task import Task
from crosshatch.trees import flatten


@dataclass(frozen=True)
class SiloPart:
    """A silo's fitted preparation and its trained block, which takes prepared samples of `input_shape`.

    `id` names the column of its files that identifies rows.
    """

    name: str
    id: str | None
    encoder: Encoder
    block: nn.Module
    input_shape: tuple[int, ...]
    outputs: int  # per sample

    def prepare(self, rows: NewRows, *, own: bool) -> Tensor:
        """What the block takes of the rows; `own`: they hold this silo's columns alone."""
        part = part_of(rows, self.encoder, self.name, own=own)
        return encode(self.encoder, part, rows.place).to(next(self.block.parameters()))

    def embed(self, x: Tensor) -> Tensor:
        """Embeddings (n, e) of prepared rows, computed as they are for the metrics of a run: to the last bit."""
        task = Task((self.block,), Sum(), Squared(), silos=(self.name,))  # fusion and loss have no say here
        weights = flatten(self.block)
        threads = torch.get_num_threads()
        batches = fixed_batches([x])
        return torch.cat([forward(task, 0, weights, batch, keep=False, threads=threads)[0] for (batch,) in batches])
