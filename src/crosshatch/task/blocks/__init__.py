"""Built-in blocks, and the way to a user's own: a block maps a silo's samples (n, ...) to outputs (n, outputs)."""

from crosshatch.task.blocks.block_from_settings import build_block
from crosshatch.task.blocks.class_mean import ClassMean
from crosshatch.task.blocks.cnn import CNN
from crosshatch.task.blocks.linear import Linear, without_features
from crosshatch.task.blocks.lstm import LSTM
from crosshatch.task.blocks.mlp import MLP
from crosshatch.task.blocks.resnet import ResNet18

__all__ = ["CNN", "LSTM", "MLP", "ClassMean", "Linear", "ResNet18", "build_block", "without_features"]
