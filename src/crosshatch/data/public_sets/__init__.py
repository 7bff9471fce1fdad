"""Readers of sets that others published or that ship with scikit-learn; `data/sources.py` alone asks for them."""
