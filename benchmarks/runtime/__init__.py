"""What parties as processes cost beside the same parties in memory, the bare streams, and the computing alone."""
