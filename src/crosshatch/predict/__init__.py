"""A trained model at work: each silo makes embeddings of its own rows, and their fusion gives the scores."""
