"""One step from a common start: one pass serves all clients."""
