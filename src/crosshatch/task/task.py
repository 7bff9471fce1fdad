"""A task: one module a silo, the fusion of their outputs, the loss and the blocks' regulariser.

Weights live outside the modules, as one flat vector a silo (`trees.Layout`): the block's parameters, and behind them
the head's where the silo holds the head. The modules themselves are templates.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor, nn
from torch.func import functional_call

from crosshatch.errors import ModelError
from crosshatch.task.fusion import Fusion, Head, Sum
from crosshatch.task.losses import Loss
from crosshatch.task.regulariser import Regulariser
from crosshatch.trees import Layout, flatten


@dataclass(frozen=True)
class Task:
    """What is trained. `silos` names the owner of each block, for error messages and files.

    >>> from crosshatch.task.losses import Squared
    >>> task = Task((nn.Linear(3, 1), nn.Linear(2, 1)), Sum(), Squared(), silos=("bank", "insurer"))
    >>> [weights.shape[0] for weights in task.initial()]
    [4, 3]
    """

    blocks: tuple[nn.Module, ...]
    fusion: Fusion
    loss: Loss
    regulariser: Regulariser = Regulariser()
    silos: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse what cannot be averaged or frozen."""
        if self.silos and len(self.silos) != len(self.blocks):
            raise ModelError(f"{len(self.blocks)} blocks for {len(self.silos)} silos: give one block a silo")
        for silo, block in zip(self.names, self.blocks, strict=True):
            _refuse_batch_norm(f"block of silo '{silo}'", block)
            if not any(p.requires_grad for p in block.parameters()):
                raise ModelError(f"block of silo '{silo}' has no trainable parameters: give it at least one layer")
        if isinstance(self.fusion, Head):
            _refuse_batch_norm("the head", self.fusion.module)
            if not 0 <= self.fusion.holder < len(self.blocks):
                raise ModelError(f"head without a holder: silo number {self.fusion.holder} of {len(self.blocks)}")

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the silos; numbered where none were given."""
        return self.silos or tuple(f"silo{j}" for j in range(len(self.blocks)))

    @cached_property
    def layouts(self) -> tuple[Layout, ...]:
        """Layout of each block's parameters."""
        return tuple(Layout.of(block) for block in self.blocks)

    @cached_property
    def head_layout(self) -> Layout | None:
        """Layout of the head's parameters; None where the fusion is a sum."""
        return Layout.of(self.fusion.module) if isinstance(self.fusion, Head) else None

    def holds_head(self, silo: int) -> bool:
        """Whether this silo trains the head."""
        return isinstance(self.fusion, Head) and self.fusion.holder == silo

    def initial(self) -> list[Tensor]:
        """The templates' own weights, one flat vector a silo."""
        weights = [flatten(block) for block in self.blocks]
        if isinstance(self.fusion, Head):
            holder = self.fusion.holder
            weights[holder] = torch.cat([weights[holder], flatten(self.fusion.module)])
        return weights

    def split(self, silo: int, weights: Tensor) -> tuple[Tensor, Tensor | None]:
        """A silo's vector (..., p) as its block's part and, at the holder, the head's."""
        if not self.holds_head(silo):
            return weights, None
        size = self.layouts[silo].size
        return weights[..., :size], weights[..., size:]

    def penalty(self, silo: int, weights: Tensor) -> Tensor:
        """What the regulariser adds for a silo's vector (..., p): it is about the blocks, a head goes without."""
        return self.regulariser.penalty(self.split(silo, weights)[0])

    def embed(self, silo: int, weights: Tensor, x: Tensor) -> Tensor:
        """Embeddings (n, e) of samples x (n, ...) under a silo's vector."""
        block, _ = self.split(silo, weights)
        out: Tensor = functional_call(self.blocks[silo], self.layouts[silo].views(block), (x,))
        return out

    def apply_head(self, head: Tensor, embeddings: Tensor) -> Tensor:
        """Scores (n, c) of concatenated embeddings (n, all e) under the head's flat vector."""
        assert isinstance(self.fusion, Head)
        assert self.head_layout is not None
        out: Tensor = functional_call(self.fusion.module, self.head_layout.views(head), (embeddings,))
        return out

    def scores(self, weights: Sequence[Tensor], xs: Sequence[Tensor]) -> Tensor:
        """Scores (n, c) of samples given as one tensor a silo."""
        embeddings = [self.embed(j, w, x) for j, (w, x) in enumerate(zip(weights, xs, strict=True))]
        if isinstance(self.fusion, Sum):
            return torch.stack(embeddings).sum(0)
        _, head = self.split(self.fusion.holder, weights[self.fusion.holder])
        assert head is not None
        return self.apply_head(head, torch.cat(embeddings, dim=-1))

    def check_fit(self, examples: Sequence[Tensor], classes: int) -> tuple[int, ...]:
        """Widths of the embeddings, found by running the blocks on a few samples a silo, or a ModelError."""
        if len(examples) != len(self.blocks):
            raise ModelError(f"{len(self.blocks)} blocks for {len(examples)} silos: give one block a silo")
        wanted = self.loss.scores(classes)
        widths = []
        for silo, block, x in zip(self.names, self.blocks, examples, strict=True):
            try:
                with torch.enable_grad():
                    out = block(x)
            except (RuntimeError, ValueError, TypeError, IndexError) as error:
                reason = str(error).splitlines()[0]
                raise ModelError(
                    f"block of silo '{silo}' does not take samples of shape {tuple(x.shape[1:])}: {reason}"
                ) from None
            if not isinstance(out, Tensor) or out.dim() != 2 or out.shape[0] != x.shape[0]:
                found = tuple(out.shape) if isinstance(out, Tensor) else type(out).__name__
                raise ModelError(
                    f"block of silo '{silo}' returned {found} for {x.shape[0]} samples: return a row of outputs each"
                )
            if not out.requires_grad:
                raise ModelError(
                    f"outputs of the block of silo '{silo}' do not depend on its parameters, so it cannot learn: "
                    "take out detach() and no_grad()"
                )
            widths.append(out.shape[1])
            if isinstance(self.fusion, Sum) and out.shape[1] != wanted:
                raise ModelError(
                    f"silo '{silo}' has embeddings of width {out.shape[1]}, the sum needs {wanted} (one a score): "
                    f"set model.outputs = {wanted} or model.fusion = 'head'"
                )
        if isinstance(self.fusion, Head):
            self._check_head(sum(widths), wanted, examples[0])
        return tuple(widths)

    def _check_head(self, width: int, wanted: int, like: Tensor) -> None:
        assert isinstance(self.fusion, Head)
        try:
            with torch.no_grad():
                out = self.fusion.module(like.new_zeros(like.shape[0], width))
        except RuntimeError as error:
            reason = str(error).splitlines()[0]
            raise ModelError(
                f"the head does not take {width} embedding numbers (all silos together; {reason}): give it {width} "
                "inputs, change model.outputs, or let model.head build one that fits"
            ) from None
        if tuple(out.shape) != (like.shape[0], wanted):
            raise ModelError(
                f"the head returns {tuple(out.shape[1:])} scores a sample, the loss needs {wanted}: give it {wanted} "
                "outputs, or let model.head build one that fits"
            )

    def to(self, device: str | torch.device, dtype: torch.dtype) -> Task:
        """The same task with copies of its templates on a device and in a precision."""
        blocks = tuple(copy.deepcopy(block).to(device=device, dtype=dtype) for block in self.blocks)
        fusion = self.fusion
        if isinstance(fusion, Head):
            fusion = Head(copy.deepcopy(fusion.module).to(device=device, dtype=dtype), fusion.holder)
        return Task(blocks, fusion, self.loss, self.regulariser, self.silos)


def _refuse_batch_norm(place: str, module: nn.Module) -> None:
    if any(isinstance(m, nn.modules.batchnorm._BatchNorm) for m in module.modules()):
        raise ModelError(
            f"{place} has BatchNorm, whose running statistics are neither averaged nor shared: use GroupNorm"
        )
