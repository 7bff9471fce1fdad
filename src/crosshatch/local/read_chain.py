"""What a module is, for the choice of strategy: a plain chain of linear layers, or one that draws random numbers."""

from __future__ import annotations

from collections.abc import Sequence
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

from crosshatch.local.layers import Chain, Layer
from crosshatch.trees import Layout

_ACTIVATIONS = {nn.ReLU: "relu", nn.Tanh: "tanh", nn.Sigmoid: "sigmoid", nn.Identity: "none"}


# Templates do not change during a run, so each is looked at once.
_CHAINS: WeakKeyDictionary[nn.Module, Chain | None] = WeakKeyDictionary()
_UNREAD: Chain = ()  # no chain is empty
_RANDOM: WeakKeyDictionary[nn.Module, bool] = WeakKeyDictionary()


def as_chain(module: nn.Module) -> Chain | None:
    """The layers of a chain, all trained, or None for any other module. Nothing may hook into the forward pass."""
    chain = _CHAINS.get(module, _UNREAD)
    if chain is _UNREAD:
        chain = _CHAINS[module] = _read_chain(module)
    return chain


def _read_chain(module: nn.Module) -> Chain | None:
    chain = chain_of(plain_layers(module) or ())
    # A layer that stands in the chain twice has its numbers once.
    whole = chain is not None and sum(layer.size for layer in chain) == Layout.of(module).size
    trained = all(parameter.requires_grad for parameter in module.parameters())
    return chain if whole and trained else None


def plain_layers(module: nn.Module) -> tuple[nn.Module, ...] | None:
    """The modules whose outputs are each other's inputs, without anything that hooks into the forward pass."""
    if any(m._forward_hooks or m._forward_pre_hooks or m._backward_hooks for m in module.modules()):
        return None
    inner = getattr(module, "layers", module)
    if inner is not module and not _forwards_to_layers(module):
        return None
    if not isinstance(inner, nn.Module) or type(inner) not in (nn.Linear, nn.Sequential):
        return None
    return tuple(inner) if isinstance(inner, nn.Sequential) else (inner,)


def chain_of(modules: Sequence[nn.Module]) -> Chain | None:
    """Linear layers with activations between them, behind a Flatten or not."""
    layers: list[Layer] = []
    for step in modules:
        if type(step) is nn.Linear:
            layers.append(Layer(step.in_features, step.out_features, step.bias is not None, "none"))
        elif type(step) in _ACTIVATIONS and layers and layers[-1].activation == "none":
            last = layers[-1]
            layers[-1] = Layer(last.inputs, last.outputs, last.bias, _ACTIVATIONS[type(step)])
        elif not (type(step) is nn.Flatten and not layers and step.start_dim == 1):
            return None
    return tuple(layers) or None


def _forwards_to_layers(module: nn.Module) -> bool:
    """Only our own blocks promise that their forward pass is `self.layers(x)`."""
    return type(module).__module__.startswith("crosshatch.task.blocks.") and len(list(module.children())) == 1


def draws_random_numbers(module: nn.Module, x: Tensor) -> bool:
    """Whether a forward pass in training mode, tried on the samples x, moves torch's generator: Dropout does."""
    if as_chain(module) is not None:
        return False
    if module not in _RANDOM:
        with torch.random.fork_rng(devices=[]), torch.no_grad():
            before = torch.get_rng_state()
            module(x)
            _RANDOM[module] = not torch.equal(before, torch.get_rng_state())
    return _RANDOM[module]
