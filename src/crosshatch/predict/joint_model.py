"""A trained model: each silo's part, which needs its own rows alone, and all parts together, rows to scores."""

import contextlib
import copy
import io
import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from crosshatch.data.dataset import NewRows
from crosshatch.data.encoding.encode_part import Encoder, encode
from crosshatch.data.new_rows import part_of
from crosshatch.errors import CrosshatchError, ModelError, one_line
from crosshatch.local.forward import fixed_batches, forward
from crosshatch.predict.model_shape import CommonShape
from crosshatch.task.fusion import Fusion, Sum
from crosshatch.task.losses import Loss, Squared
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


class JointModule(nn.Module):
    """The whole model as one module: `module(x_1, ..., x_k)`, a prepared tensor per silo, gives scores (n, c)."""

    def __init__(self, blocks: Sequence[nn.Module], fusion: Fusion) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(blocks)
        self.head = fusion.module
        self._fusion = fusion

    def forward(self, *xs: Tensor) -> Tensor:
        embeddings = [block(x) for block, x in zip(self.blocks, xs, strict=True)]
        return self._fusion.scores(self._fusion.join_all(embeddings), self.head)


@dataclass(frozen=True)
class JointModel:
    """The silos' parts in order, how their embeddings become scores, and the loss, which says what scores mean."""

    common: CommonShape
    parts: tuple[SiloPart, ...]
    fusion: Fusion
    loss: Loss

    def scores(self, xs: Sequence[Tensor]) -> Tensor:
        return self.fuse([part.embed(x) for part, x in zip(self.parts, xs, strict=True)])

    def fuse(self, embeddings: Sequence[Tensor]) -> Tensor:
        """Scores (n, c) of all silos' embeddings: all that has to come together."""
        fusion = self.fusion
        with torch.no_grad():
            joined = (fusion.join_all(batch) for batch in fixed_batches(embeddings))
            return torch.cat([fusion.scores(one, fusion.module) for one in joined])

    def module(self) -> JointModule:
        """The model as one module, in evaluation mode; a copy, to do with as one likes."""
        return copy.deepcopy(JointModule([part.block for part in self.parts], self.fusion)).eval()


def export(model: JointModel) -> torch.export.ExportedProgram:
    """The module of a model as `torch.export` has it, for any number of rows."""
    samples = torch.export.Dim("samples", min=1)
    examples = tuple(torch.zeros(3, *part.input_shape, dtype=model.common.dtype) for part in model.parts)
    shapes = {"xs": tuple({0: samples} for _ in examples)}
    try:
        # What torch prints of its own about a block it does not know is in the error, too.
        with torch.no_grad(), warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):
            # torch's own LSTM rebinds its list of weights while it is traced; they are its parameters all the same.
            warnings.filterwarnings("ignore", "The tensor attributes? .* assigned during export", UserWarning)
            return torch.export.export(model.module(), examples, dynamic_shapes=shapes)
    except CrosshatchError:
        raise
    except Exception as error:  # whatever a user's own block does that torch.export does not know
        raise ModelError(
            f"torch.export does not take this model: {one_line(error)[:300]}; change the block it names"
        ) from error


def program_bytes(program: torch.export.ExportedProgram) -> bytes:
    content = io.BytesIO()
    with warnings.catch_warnings():
        # What lies channels-last in memory is taken for a piece of something larger; on a CPU that does no harm.
        warnings.filterwarnings("ignore", "No complete tensor found in the group", UserWarning)
        torch.export.save(program, content)
    return content.getvalue()
