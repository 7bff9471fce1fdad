"""Which data is it: keyed digests of columns, rows, labels and split, and what differs between two of them."""
