"""Models to predict with."""

from __future__ import annotations

OWN_BLOCK = """
import torch

class Wave(torch.nn.Module):
    def __init__(self, input_shape, outputs):
        super().__init__()
        self.layer = torch.nn.Linear(input_shape[0], outputs)
        self.register_buffer("drawn", torch.randn(input_shape[0]))            # kept in the file
        self.register_buffer("hidden", torch.randn(input_shape[0]), persistent=False)
        self.plain = torch.randn(input_shape[0])                              # in no file: drawn again

    def forward(self, x):
        return self.layer(torch.sin(x * self.drawn + self.hidden) + self.plain.to(x))
"""


HEAD = {"block": "mlp", "hidden": [5], "fusion": "head", "outputs": 3}
