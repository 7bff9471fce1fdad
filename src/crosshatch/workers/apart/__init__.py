"""`run.load = "apart"`: each worker reads its own rows, and columns are prepared by sums over the workers."""
