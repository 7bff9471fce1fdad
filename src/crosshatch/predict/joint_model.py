"""All silos' parts together: prepared rows to scores."""

import contextlib
import copy
import io
import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from crosshatch.errors import CrosshatchError, ModelError, one_line
from crosshatch.local.forward import fixed_batches
from crosshatch.predict.model_shape import CommonShape
from crosshatch.predict.silo_part import SiloPart
from crosshatch.task.fusion import Fusion
from crosshatch.task.losses import Loss


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
