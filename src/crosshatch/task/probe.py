"""Try a module out on a few samples: it may turn every sample into a row of outputs, and do nothing else.

Everything is tried on copies, and torch's generator is put back: the module stays as it was. Weights are shaken for the
trials, since the initial ones may hide what a module does (zeros show nothing of their input, and what
spectral normalisation keeps has settled).
"""

import copy
from collections.abc import Iterator
from contextlib import AbstractContextManager

import torch
from torch import Tensor, nn

from crosshatch.data.notes import counted
from crosshatch.errors import ModelError
from crosshatch.task.outputs import Promise

ROWS = 64
"""How many samples are enough to try a module out."""
_FEW = 5  # samples for a module with many parameters, whose passes take long
_MANY = 1_000_000
_WILD = 1000.0
_PLAIN = frozenset({
    nn.Sequential, nn.Linear, nn.ReLU, nn.Tanh, nn.Sigmoid, nn.Identity, nn.Flatten, nn.Conv2d, nn.MaxPool2d, nn.LSTM,
    nn.GroupNorm,
})  # fmt: skip


def copied(place: str, module: nn.Module) -> nn.Module:
    try:
        return copy.deepcopy(module)
    except RuntimeError as error:
        raise ModelError(
            f"{place} cannot be copied, perhaps because it was called before ({_reason(error)}): make it anew"
        ) from None


def first_outputs(promise: Promise, module: nn.Module, x: Tensor, refusal: str) -> Tensor:
    """The outputs (n, e) for samples x (n, ...) as in training; `refusal` says what it means if the module fails."""
    with _own_generator(x), torch.enable_grad():
        try:
            out = copy.deepcopy(module)(x.clone())
        except (RuntimeError, ValueError, TypeError, IndexError) as error:
            raise ModelError(refusal.replace("{reason}", _reason(error))) from None
    return promise.check(out, x)


def try_out(promise: Promise, module: nn.Module, x: Tensor) -> None:
    """Refuse a module that keeps something, writes into its samples x (n, ...), or lets them look at each other.

    And one that draws random numbers in evaluation mode: two predictions of a sample would differ.
    """
    if _is_plain(module) or not len(x):
        return
    large = sum(parameter.numel() for parameter in module.parameters()) > _MANY
    x = x[: _FEW if large else ROWS].detach()
    counts = [count for count in dict.fromkeys((1, 2, 3, len(x))) if count <= len(x)]
    for count in counts:
        try:
            _run(promise, copy.deepcopy(module), x[:count])
        except (RuntimeError, ValueError, TypeError, IndexError) as error:
            raise ModelError(
                f"{promise.place} fails with {counted(count, 'sample')}, but takes other numbers of samples: "
                f"{_reason(error)}"
            ) from None
    shaken = _shaken(promise, module, x)
    for trial in (module, shaken):
        if trial is not None:
            _refuse_memory(promise, copy.deepcopy(trial), x)
    trial = copy.deepcopy(module).eval()
    if not _equal(*(_run(promise, trial, x, seed=seed) for seed in (0, 1))):
        raise ModelError(
            f"{promise.place} draws random numbers in evaluation mode, so that two predictions of a sample would "
            "differ: draw them only while self.training is true, as Dropout does"
        )
    for trial in _modes(module if shaken is None else shaken, x):
        for count in counts[-1:] if large else counts[1:]:
            _refuse_mixing(promise, trial, x, count)
        _refuse_counting(promise, trial, x)


def refuse_random(promise: Promise, module: nn.Module, x: Tensor) -> None:
    """Refuse a module that draws random numbers where nobody would give it a seed or turn it off for evaluation."""
    if not _is_plain(module) and _draws(copy.deepcopy(module), x):
        raise ModelError(
            f"{promise.place} draws random numbers, which would differ between runs and in evaluations: put Dropout "
            "into the blocks, where its masks follow from the seed"
        )


def _draws(trial: nn.Module, x: Tensor) -> bool:
    """Whether a forward pass moves torch's generator."""
    read = torch.cuda.get_rng_state if x.is_cuda else torch.get_rng_state
    with _own_generator(x), torch.no_grad():
        before = read()
        trial(x[:1].clone())
        return not torch.equal(before, read())


def _is_plain(module: nn.Module) -> bool:
    """Only layers that are known to do nothing of the kind, and blocks of our own."""
    return all(
        (type(inner) in _PLAIN or type(inner).__module__.startswith("crosshatch.task.blocks."))
        and not (inner._forward_hooks or inner._forward_pre_hooks or getattr(inner, "inplace", False))
        for inner in module.modules()
    )


def _shaken(promise: Promise, module: nn.Module, x: Tensor) -> nn.Module | None:
    """A copy with other weights, all different from each other and from zero; None where it does not work with them."""
    trial = copy.deepcopy(module)
    draw = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in trial.parameters():
            noise = torch.randn(parameter.shape, generator=draw).to(parameter)
            parameter.add_(noise, alpha=0.05 + 0.5 * float(parameter.abs().mean() if parameter.numel() else 0.0))
    out = _as_far_as_possible(promise, copy.deepcopy(trial), x)
    return trial if out is not None and bool(torch.isfinite(out).all()) else None


def _modes(module: nn.Module, x: Tensor) -> Iterator[nn.Module]:
    """Copies to try: as it is trained, unless it draws random numbers besides Dropout's, and in evaluation mode."""
    trial = copy.deepcopy(module)
    if any(inner.training for inner in trial.modules()):
        for inner in trial.modules():
            if isinstance(inner, nn.modules.dropout._DropoutNd):
                inner.eval()
        if not _draws(trial, x):
            yield copy.deepcopy(trial)
    yield trial.eval()


def _refuse_memory(promise: Promise, trial: nn.Module, x: Tensor) -> None:
    before = _state(trial)
    first = _run(promise, trial, x)
    _run(promise, trial, x[-1:])
    again = _run(promise, trial, x)
    after = _state(trial)
    for name in (*before, *(name for name in after if name not in before)):
        if name not in before or name not in after or not _equal(before[name], after[name]):
            kind = "parameter" if name in dict(trial.named_parameters()) else "buffer"
            raise ModelError(
                f"{promise.place} changes its {kind} '{name}' in a forward pass: the parties would have to "
                "agree on it, and it is neither averaged nor kept in a checkpoint: use a layer that keeps nothing "
                "(GroupNorm, LayerNorm, weight_norm), or put it into evaluation mode, where it stays as it is"
            )
    if not _close(first, again, first):
        raise ModelError(
            f"{promise.place} returned other outputs for the same samples when it was called again: "
            "keep nothing from call to call, and draw random numbers from torch's generator alone"
        )


def _refuse_mixing(promise: Promise, trial: nn.Module, x: Tensor, count: int) -> None:
    """Exchanging all other samples leaves a sample's outputs as they are, to the last bit in batches of one size."""
    base = _run(promise, trial, x[:count])
    draw = torch.Generator().manual_seed(2)
    noise = torch.randn(x[:count].shape, generator=draw).to(x)
    wild = x[:count] + _WILD * (1 + x.abs().mean()) * noise
    # On a graphics card an index out of range ends the process.
    for others in (x[-count:].flip(0),) if x.is_cuda else (x[-count:].flip(0), wild):
        for kept in {0, count - 1}:
            changed = others.clone()
            changed[kept] = x[kept]
            out = _as_far_as_possible(promise, trial, changed)
            if out is not None and not _close(base[kept], out[kept], base):
                raise ModelError(
                    f"{promise.place} lets samples look at each other: among other samples, one sample's "
                    "outputs were different, but a client sees its own samples only: compute each row from its own "
                    "sample, for example with LayerNorm, or standardise the data before (data.standardise)"
                )


def _refuse_counting(promise: Promise, trial: nn.Module, x: Tensor) -> None:
    """A sample alone has the outputs it has among others; rounding may upset one of them, not all."""
    base = _run(promise, trial, x)
    rows = range(1, min(3, len(x)))
    if rows and not any(_close(base[i : i + 1], _run(promise, trial, x[i : i + 1]), base) for i in rows):
        raise ModelError(
            f"{promise.place} returned other outputs for a sample alone than for the same sample among "
            f"{len(x)}: compute each row from its own sample, whatever the number of samples and its place among them"
        )


def _run(promise: Promise, module: nn.Module, x: Tensor, seed: int = 0) -> Tensor:
    """The outputs for x, of which the module gets a copy; random numbers are the same every time."""
    given = x.clone()
    with _own_generator(x), torch.no_grad():
        torch.manual_seed(seed)
        out = promise.check(module(given), given)
    if not _equal(given, x):
        raise ModelError(
            f"{promise.place} writes into its input, which would change the data: work on a copy (x.clone()), "
            "or without inplace=True and operations that end in an underscore"
        )
    return out


def _as_far_as_possible(promise: Promise, module: nn.Module, x: Tensor) -> Tensor | None:
    """None where a user's module raises something for weights or samples it was not made for, an index for example."""
    try:
        return _run(promise, module, x)
    except ModelError:
        raise
    except (RuntimeError, ValueError, TypeError, IndexError, KeyError, ArithmeticError, AssertionError):
        return None


def _own_generator(x: Tensor) -> AbstractContextManager[None]:
    return torch.random.fork_rng(devices=[x.device] if x.is_cuda else [])


def _reason(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


def _state(module: nn.Module) -> dict[str, Tensor]:
    return {name: tensor.detach().clone() for name, tensor in (*module.named_buffers(), *module.named_parameters())}


def _equal(one: Tensor, other: Tensor) -> bool:
    """The same numbers; NaN is the same as NaN."""
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    return bool(((one == other) | ((one != one) & (other != other))).all())


def _close(one: Tensor, other: Tensor, like: Tensor) -> bool:
    """Up to rounding, in comparison with the outputs `like`; what is not finite is blamed elsewhere."""
    if not torch.isfinite(one).all():
        return True
    scale = like[torch.isfinite(like)].abs().max()
    return bool(((one - other).abs() <= torch.finfo(one.dtype).eps ** 0.5 * scale).all())
