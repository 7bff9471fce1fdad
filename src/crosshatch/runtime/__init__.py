"""Parties as processes: identity, streams over mutual TLS, state on disk.

What a process that was started again does first is in `beginning.py`, and how long others wait for it in `joined.py`.
"""
