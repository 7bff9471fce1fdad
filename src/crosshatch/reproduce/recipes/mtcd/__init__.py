"""Recipes of the MTCD paper, and the runs that they read."""
