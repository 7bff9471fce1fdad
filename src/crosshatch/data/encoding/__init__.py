"""Columns, images and sequences as numbers."""
