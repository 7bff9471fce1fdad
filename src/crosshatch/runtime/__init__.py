"""Parties as processes: identity, streams over mutual TLS, state on disk."""
