"""Modules that are plain chains of linear layers and activations, which can be stacked by hand."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor, nn

_ACTIVATIONS = {nn.ReLU: "relu", nn.Tanh: "tanh", nn.Sigmoid: "sigmoid", nn.Identity: "none"}


@dataclass(frozen=True)
class Layer:
    """A linear layer and the activation behind it."""

    inputs: int
    outputs: int
    bias: bool
    activation: str

    @property
    def size(self) -> int:
        """Numbers in the layer: weights (outputs x inputs), then the bias."""
        return self.outputs * (self.inputs + self.bias)


Chain = tuple[Layer, ...]


def as_chain(module: nn.Module) -> Chain | None:
    """The layers of a chain, or None for any other module. Nothing may hook into the forward pass."""
    if any(m._forward_hooks or m._forward_pre_hooks for m in module.modules()):
        return None
    inner = getattr(module, "layers", module)
    if not isinstance(inner, nn.Linear | nn.Sequential):
        return None
    if inner is not module and (len(list(module.children())) != 1 or not _forwards_to_layers(module)):
        return None
    steps = [inner] if isinstance(inner, nn.Linear) else list(inner)
    layers: list[Layer] = []
    for step in steps:
        if type(step) is nn.Linear:
            if not (step.weight.requires_grad and (step.bias is None or step.bias.requires_grad)):
                return None
            layers.append(Layer(step.in_features, step.out_features, step.bias is not None, "none"))
        elif type(step) in _ACTIVATIONS and layers and layers[-1].activation == "none":
            last = layers[-1]
            layers[-1] = Layer(last.inputs, last.outputs, last.bias, _ACTIVATIONS[type(step)])
        elif type(step) is nn.Flatten and not layers and step.start_dim == 1:
            continue
        else:
            return None
    return tuple(layers) or None


def _forwards_to_layers(module: nn.Module) -> bool:
    """Only our own blocks promise that their forward pass is `self.layers(x)`."""
    return type(module).__module__.startswith("crosshatch.task.blocks.")


def activate(kind: str, z: Tensor) -> Tensor:
    """The activation, in place where torch can."""
    if kind == "relu":
        return z.clamp_(min=0)
    if kind == "tanh":
        return z.tanh_()
    return z.sigmoid_() if kind == "sigmoid" else z


def slope(kind: str, gradient: Tensor, output: Tensor) -> Tensor:
    """`gradient` times the activation's derivative, found from its output."""
    if kind == "relu":
        return gradient.mul_(output > 0)
    if kind == "tanh":
        return gradient.mul_(1 - output * output)
    return gradient.mul_(output * (1 - output)) if kind == "sigmoid" else gradient
