"""Readers of sets that others published or that ship with scikit-learn; `reading/sources.py` alone asks for them."""
