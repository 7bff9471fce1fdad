"""A recipe per table or figure of a paper, and the sets of runs that they read."""
