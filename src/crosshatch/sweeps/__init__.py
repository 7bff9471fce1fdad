"""Sweeps: one config with many values and seeds, the runs of all of them, and the best by the validation rows."""
