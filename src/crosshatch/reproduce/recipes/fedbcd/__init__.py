"""Recipes of the FedBCD paper, and the runs that they read."""
