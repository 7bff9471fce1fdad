"""A comparison of runs as tables for the terminal, and what to say below them."""
