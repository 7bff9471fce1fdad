"""Dividing data: which columns a silo holds, and which of its clients holds a sample."""
