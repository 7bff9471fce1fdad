"""What to do where training has diverged; only asked once it has."""
