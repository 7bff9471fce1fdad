"""The config of runs that are killed."""

from __future__ import annotations

CONFIG = """
[data]
name = "breast_cancer"
[federation]
silos = 2
clients = 4
[model]
block = "mlp"
hidden = [12]
[algorithm]
name = "tdcd"
local_steps = 3
step_size = 0.2
batch_size = 64
[network]
kind = "bandwidth"
step_seconds = "measure"
links.client-hub = { latency = 0.01, up = 10, down = 50 }
[evaluate]
every = 1
[run]
rounds = 60
threads = 1
checkpoint_every = 3
"""
