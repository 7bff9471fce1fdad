"""Every party from inside: its own half of each exchange, over a line to the others."""
