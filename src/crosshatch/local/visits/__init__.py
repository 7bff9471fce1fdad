"""A token's visit: the steps of one agent."""
