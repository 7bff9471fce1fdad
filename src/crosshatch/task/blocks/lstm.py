"""The recurrent block for time series."""

from torch import Tensor, nn


class LSTM(nn.Module):
    """Sequences (n, t, d) through one LSTM layer; its last hidden state, through a linear layer, is (n, outputs).

    Table rows (n, t * d) whose columns are points in time, t of them with d numbers each, are folded into sequences.
    """

    def __init__(self, input_shape: tuple[int, int], outputs: int, *, hidden: int = 16) -> None:
        super().__init__()
        self.input_shape = input_shape
        self.lstm = nn.LSTM(input_shape[1], hidden, batch_first=True)
        self.output = nn.Linear(hidden, outputs)

    def forward(self, x: Tensor) -> Tensor:
        states, _ = self.lstm(x.view(-1, *self.input_shape))
        out: Tensor = self.output(states[:, -1])
        return out
