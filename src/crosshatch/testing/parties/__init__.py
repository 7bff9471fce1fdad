"""A federation party by party: everybody holds its own rows, labels and weights, and all else arrives as bytes."""
