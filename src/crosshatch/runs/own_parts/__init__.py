"""A user's own parts in a run: named in its config, checked, copied into its directory, blamed for their mistakes."""
