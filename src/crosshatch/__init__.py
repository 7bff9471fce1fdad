"""Crosshatch."""
