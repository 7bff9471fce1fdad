"""A task: one module a silo, the fusion of their outputs, the loss and the blocks' regulariser.

Weights live outside the modules, as one flat vector a silo (`trees.Layout`): the block's parameters, and behind them
the head's where the silo holds the head. The modules themselves are templates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor, nn
from torch.func import functional_call

from crosshatch.errors import ModelError
from crosshatch.task.fusion import Fusion, Head, Sum
from crosshatch.task.losses import Loss
from crosshatch.task.outputs import Promise, checked, expect
from crosshatch.task.probe import ROWS, copied, first_outputs, refuse_random, try_out
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

    @cached_property
    def trained(self) -> tuple[Tensor | None, ...]:
        """Where the trained numbers stand in each silo's vector; None where all are. The others are never sent."""
        fusion = self.fusion
        held = {fusion.holder: [fusion.module]} if isinstance(fusion, Head) else {}
        return tuple(_trained([block, *held.get(j, [])]) for j, block in enumerate(self.blocks))

    @cached_property
    def sent(self) -> tuple[int, ...]:
        """How many numbers of each silo's vector travel: those that are trained."""
        pairs = zip(self.trained, self.initial(), strict=True)
        return tuple(len(weights) if trained is None else len(trained) for trained, weights in pairs)

    @property
    def sent_head(self) -> int:
        """The same for the head's own vector."""
        assert self.head_layout is not None
        return self.head_layout.size if self.trained_head is None else len(self.trained_head)

    @cached_property
    def trained_head(self) -> Tensor | None:
        """The same for the head's own vector."""
        return _trained([self.fusion.module]) if isinstance(self.fusion, Head) else None

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
        out = functional_call(self.blocks[silo], self.layouts[silo].views(block), (x,))
        return checked(self.blocks[silo], out, x)

    def apply_head(self, head: Tensor, embeddings: Tensor) -> Tensor:
        """Scores (n, c) of concatenated embeddings (n, all e) under the head's flat vector."""
        assert isinstance(self.fusion, Head)
        assert self.head_layout is not None
        out = functional_call(self.fusion.module, self.head_layout.views(head), (embeddings,))
        return checked(self.fusion.module, out, embeddings)

    def scores(self, weights: Sequence[Tensor], xs: Sequence[Tensor]) -> Tensor:
        """Scores (n, c) of samples given as one tensor a silo."""
        embeddings = [self.embed(j, w, x) for j, (w, x) in enumerate(zip(weights, xs, strict=True))]
        if isinstance(self.fusion, Sum):
            return torch.stack(embeddings).sum(0)
        _, head = self.split(self.fusion.holder, weights[self.fusion.holder])
        assert head is not None
        return self.apply_head(head, torch.cat(embeddings, dim=-1))

    def check_fit(self, examples: Sequence[Tensor], classes: int) -> tuple[int, ...]:
        """Widths of the embeddings, found by trying the blocks out on a few samples a silo, or a ModelError.

        The modules stay as they are, and so does torch's generator.
        """
        if len(examples) != len(self.blocks):
            raise ModelError(f"{len(self.blocks)} blocks for {len(examples)} silos: give one block a silo")
        wanted = self.loss.scores(classes)
        widths, embeddings = [], []
        for silo, block, x in zip(self.names, self.blocks, examples, strict=True):
            place = f"block of silo '{silo}'"
            refusal = f"{place} does not take samples of shape {tuple(x.shape[1:])}: {{reason}}"
            out = first_outputs(Promise(place), block, x[:2], refusal)
            if not out.requires_grad:
                raise ModelError(
                    f"outputs of the {place} do not depend on its parameters, so it cannot learn: "
                    "take out detach() and no_grad()"
                )
            widths.append(out.shape[1])
            if isinstance(self.fusion, Sum) and out.shape[1] != wanted:
                raise ModelError(
                    f"silo '{silo}' has embeddings of width {out.shape[1]}, the sum needs {wanted} (one a score): "
                    f"set model.outputs = {wanted} or model.fusion = 'head'"
                )
            promise = Promise(place, out.shape[1])
            try_out(promise, block, x)
            expect(block, promise)
            embeddings.append(out.detach())
        if isinstance(self.fusion, Head):
            self._check_head(torch.cat(embeddings, dim=1), wanted)
        return tuple(widths)

    def _check_head(self, embeddings: Tensor, wanted: int) -> None:
        assert isinstance(self.fusion, Head)
        head, width = self.fusion.module, embeddings.shape[1]
        refusal = (
            f"the head does not take {width} embedding numbers (all silos together; {{reason}}): give it {width} "
            "inputs, change model.outputs, or let model.head build one that fits"
        )
        out = first_outputs(Promise("the head"), head, embeddings, refusal)
        if out.shape[1] != wanted:
            raise ModelError(
                f"the head returns {tuple(out.shape[1:])} scores a sample, the loss needs {wanted}: give it {wanted} "
                "outputs, or let model.head build one that fits"
            )
        promise, draw = Promise("the head", wanted), torch.Generator().manual_seed(0)
        trial = torch.randn(ROWS, width, generator=draw).to(embeddings)
        try_out(promise, head, trial)
        refuse_random(promise, head, trial)
        expect(head, promise)

    def to(self, device: str | torch.device, dtype: torch.dtype) -> Task:
        """The same task with copies of its templates on a device and in a precision."""
        named = zip(self.names, self.blocks, strict=True)
        blocks = tuple(copied(f"block of silo '{silo}'", b).to(device=device, dtype=dtype) for silo, b in named)
        fusion = self.fusion
        if isinstance(fusion, Head):
            fusion = Head(copied("the head", fusion.module).to(device=device, dtype=dtype), fusion.holder)
        return Task(blocks, fusion, self.loss, self.regulariser, self.silos)


def _trained(modules: Sequence[nn.Module]) -> Tensor | None:
    parameters = [parameter for module in modules for parameter in module.parameters()]
    if all(parameter.requires_grad for parameter in parameters):
        return None
    trained = [torch.full((p.numel(),), p.requires_grad, device=p.device) for p in parameters]
    return torch.cat(trained).nonzero().squeeze(1)


def _refuse_batch_norm(place: str, module: nn.Module) -> None:
    if any(isinstance(m, nn.modules.batchnorm._BatchNorm) for m in module.modules()):
        raise ModelError(
            f"{place} has BatchNorm, whose running statistics are neither averaged nor shared: use GroupNorm"
        )
