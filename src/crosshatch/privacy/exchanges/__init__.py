"""Exchanges in which derivatives travel encrypted: their numbers, and what they cost."""
