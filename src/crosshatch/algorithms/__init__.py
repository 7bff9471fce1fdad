"""One method a file, each a short text over the exchanges."""
