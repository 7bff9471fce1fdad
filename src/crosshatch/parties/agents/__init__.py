"""Agents on a graph, and the server of their tokens."""
