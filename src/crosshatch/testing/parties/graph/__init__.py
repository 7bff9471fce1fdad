"""Agents on a graph, one after the other."""
