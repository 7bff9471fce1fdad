"""A task: one module per silo, the fusion of their outputs, the loss, the blocks' regulariser and the optimiser.

Weights live outside the modules, as one flat vector per silo (`trees.Layout`): the block's parameters, and behind them
the head's where the silo holds the head. The modules themselves are templates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor, nn
from torch.func import functional_call

from crosshatch.errors import ModelError
from crosshatch.task.fit import Elsewhere, block_outputs, check_block, refuse_modules
from crosshatch.task.fusion import Columns, Fusion
from crosshatch.task.losses import Loss
from crosshatch.task.optimisers import Optimiser
from crosshatch.task.outputs import checked
from crosshatch.task.probe import copied
from crosshatch.task.regulariser import Regulariser
from crosshatch.task.tie import Tie
from crosshatch.trees import Layout, flatten


@dataclass(frozen=True)
class Task:
    """What is trained. `silos` names the owner of each block, for error messages and files.

    `optimiser` is what local steps make of their gradients; None: the papers' plain steps. With `transfer` the
    objective ties two silos' embeddings together, and the head is a `ClassMean` that follows from its holder's block.

    >>> from crosshatch.task.fusion import Sum
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
    optimiser: Optimiser | None = None
    transfer: Tie | None = None

    def __post_init__(self) -> None:
        if self.silos and len(self.silos) != len(self.blocks):
            raise ModelError(f"{len(self.blocks)} blocks for {len(self.silos)} silos: give one block per silo")
        for silo, block in zip(self.names, self.blocks, strict=True):
            refuse_modules(f"block of silo '{silo}'", block)
            if not isinstance(block, Elsewhere) and not any(p.requires_grad for p in block.parameters()):
                raise ModelError(f"block of silo '{silo}' has no trainable parameters: give it at least one layer")
        self.fusion.check(len(self.blocks))

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the silos; numbered from 1 on where none were given, as data is divided."""
        return self.silos or tuple(f"silo{j + 1}" for j in range(len(self.blocks)))

    @cached_property
    def layouts(self) -> tuple[Layout, ...]:
        return tuple(Layout.of(block) for block in self.blocks)

    @cached_property
    def head(self) -> nn.Module | None:
        """The head's template; None where the scores are a sum."""
        return self.fusion.module

    @property
    def head_holder(self) -> int | None:
        return self.fusion.holder

    @property
    def head_layout(self) -> Layout | None:
        return self.fusion.layout

    def holds_head(self, silo: int) -> bool:
        return self.fusion.holder == silo

    def modules_of(self, silo: int) -> list[nn.Module]:
        """The templates of what a silo trains: its block, and the head where it is held."""
        head = self.head if self.holds_head(silo) else None
        return [self.blocks[silo]] if head is None else [self.blocks[silo], head]

    @cached_property
    def trained(self) -> tuple[Tensor | None, ...]:
        """Where the trained numbers stand in each silo's vector; None where all are. The others are never sent."""
        return tuple(_trained(self.modules_of(j)) for j in range(len(self.blocks)))

    @cached_property
    def sent(self) -> tuple[int, ...]:
        """How many numbers of each silo's vector travel: those that are trained."""
        pairs = zip(self.trained, self.initial(), strict=True)
        return tuple(len(weights) if trained is None else len(trained) for trained, weights in pairs)

    @property
    def sent_head(self) -> int:
        assert self.head_layout is not None
        return self.head_layout.size if self.trained_head is None else len(self.trained_head)

    @cached_property
    def trained_head(self) -> Tensor | None:
        """Where the trained numbers stand in the head's own vector; None where all are, or where there is none."""
        return None if self.head is None else _trained([self.head])

    def initial(self) -> list[Tensor]:
        """The templates' own weights, one flat vector per silo."""
        flat = [[flatten(module) for module in self.modules_of(j)] for j in range(len(self.blocks))]
        return [torch.cat(both) if len(both) > 1 else both[0] for both in flat]

    def split(self, silo: int, weights: Tensor) -> tuple[Tensor, Tensor | None]:
        """A silo's vector (..., p) as its block's part and, at the holder, the head's."""
        if not self.holds_head(silo):
            return weights, None
        size = self.layouts[silo].size
        return weights[..., :size], weights[..., size:]

    @cached_property
    def free(self) -> tuple[Tensor | None, ...]:
        """True (p,) where the regulariser leaves numbers of each block alone, its biases; None where it does not."""
        weighed = self.regulariser.l2 > 0 or self.regulariser.l1 > 0
        if self.regulariser.penalise_bias or not weighed:
            return (None,) * len(self.blocks)
        return tuple(_biases(block) for block in self.blocks)

    def penalty(self, silo: int, weights: Tensor) -> Tensor:
        """What the regulariser adds for a silo's vector (..., p): only blocks are regularised, a head is not."""
        return self.regulariser.penalty(self.split(silo, weights)[0], self.free[silo])

    def alignment(self, embeddings: Sequence[Tensor]) -> float:
        """What tying the silos' embeddings (n, e) together adds to the mean loss, where they are."""
        if self.transfer is None:
            return 0.0
        return float(self.transfer.aligned(embeddings[0], embeddings[1]).mean(dtype=torch.float64))

    def embed(self, silo: int, weights: Tensor, x: Tensor) -> Tensor:
        """Embeddings (n, e) of samples x (n, ...) under a silo's vector."""
        block, _ = self.split(silo, weights)
        out = functional_call(self.blocks[silo], self.layouts[silo].views(block), (x,))
        return checked(self.blocks[silo], out, x)

    def head_in(self, weights: Sequence[Tensor]) -> Tensor | None:
        """The head's part of all silos' vectors; None where there is none."""
        holder = self.head_holder
        return None if holder is None else self.split(holder, weights[holder])[1]

    def apply_head(self, head: Tensor, embeddings: Tensor) -> Tensor:
        """Scores (n, c) of concatenated embeddings (n, all e) under the head's flat vector."""
        return self.fusion.scores(embeddings, self.fusion.under(head))

    def combine(self, embeddings: Sequence[Tensor], head: Tensor | None) -> Tensor:
        """Scores (n, c) of all silos' embeddings (n, e), under the head's flat vector where there is one."""
        return self.fusion.scores(self.fusion.join_all(embeddings), self.fusion.under(head))

    def derivative(self, own: Tensor, others: Tensor, y: Tensor, *, columns: Columns, head: Tensor | None) -> Tensor:
        """Each sample's derivative of its loss at a silo's own embeddings (n, e), given the others' part.

        In a transfer task what a silo without labels needs instead: the components (n, 2 e).
        """
        if self.transfer is not None:
            assert head is not None
            low, high = columns
            return self.transfer.components(torch.cat([others[:, :low], others[:, high:]], dim=1), head, y)
        under = self.fusion.under(head)
        return self.fusion.derivative(self.loss, own, others, y, columns=columns, head=under)

    def scores(self, weights: Sequence[Tensor], xs: Sequence[Tensor]) -> Tensor:
        """Scores (n, c) of samples given as one tensor per silo."""
        embeddings = [self.embed(j, w, x) for j, (w, x) in enumerate(zip(weights, xs, strict=True))]
        return self.combine(embeddings, self.head_in(weights))

    def check_fit(self, examples: Sequence[Tensor], classes: int) -> tuple[int, ...]:
        """Widths of the embeddings, found by trying the blocks out on a few samples per silo, or a ModelError.

        The modules stay as they are, and so does torch's generator. Blocks with another party have the width they were
        given; the examples in their places are not looked at.
        """
        if len(examples) != len(self.blocks):
            raise ModelError(f"{len(self.blocks)} blocks for {len(examples)} silos: give one block per silo")
        wanted = self.loss.scores(classes)
        embeddings = []
        for silo, block, x in zip(self.names, self.blocks, examples, strict=True):
            out = block_outputs(silo, block, x)
            self.fusion.check_width(silo, out.shape[1], wanted)
            check_block(silo, block, x, out.shape[1])
            embeddings.append(out.detach())
        if self.transfer is not None:
            self.transfer.check(self.names, [out.shape[1] for out in embeddings], self.loss)
        self.fusion.check_head(embeddings, wanted)
        return tuple(out.shape[1] for out in embeddings)

    def to(self, device: str | torch.device, dtype: torch.dtype) -> Task:
        named = zip(self.names, self.blocks, strict=True)
        blocks = tuple(copied(f"block of silo '{silo}'", b).to(device=device, dtype=dtype) for silo, b in named)
        return replace(self, blocks=blocks, fusion=self.fusion.to(device, dtype))


def _trained(modules: Sequence[nn.Module]) -> Tensor | None:
    parameters = [parameter for module in modules for parameter in module.parameters()]
    if all(parameter.requires_grad for parameter in parameters):
        return None
    trained = [torch.full((p.numel(),), p.requires_grad, device=p.device) for p in parameters]
    return torch.cat(trained).nonzero().squeeze(1)


def _biases(block: nn.Module) -> Tensor | None:
    """True (p,) where a block's vector has biases: parameters whose own name begins so; None where there are none."""
    named = [(name.rpartition(".")[2], p) for name, p in block.named_parameters()]
    if not any(name.startswith("bias") for name, _ in named):
        return None
    return torch.cat([torch.full((p.numel(),), name.startswith("bias"), device=p.device) for name, p in named])
