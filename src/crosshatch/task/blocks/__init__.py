"""Built-in blocks, and the way to a user's own: a block maps a silo's samples (n, ...) to outputs (n, outputs)."""

from crosshatch.task.blocks.block_from_settings import build_block, build_head
from crosshatch.task.blocks.built_in import CNN, LSTM, MLP, Linear, ResNet18, without_features
from crosshatch.task.blocks.class_mean import ClassMean

__all__ = ["CNN", "LSTM", "MLP", "ClassMean", "Linear", "ResNet18", "build_block", "build_head", "without_features"]
