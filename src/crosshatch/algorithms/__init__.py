"""One method per file, each a short class written against the exchanges."""
