"""Races of the simulator's local steps against central training and a naive loop: `python -m benchmarks`."""
