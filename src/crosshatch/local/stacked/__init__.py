"""Many clients at once: their copies of the weights are an axis."""
