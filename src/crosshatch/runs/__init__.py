"""Runs: the config, the run directory, checkpoints and the training loop."""
