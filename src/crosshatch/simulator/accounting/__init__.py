"""What a message costs in bytes and seconds, and nothing else."""
