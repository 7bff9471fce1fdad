"""Recipes of the ICASSP paper on TDCD, and the runs that they read."""
