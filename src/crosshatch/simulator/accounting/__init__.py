"""Counts messages, and what they cost in bytes and seconds; nothing else."""
