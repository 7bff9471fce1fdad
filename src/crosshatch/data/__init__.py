"""Data sets: where samples come from, how a silo prepares its columns, and what a federation of them looks like."""
