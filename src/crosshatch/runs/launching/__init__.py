"""A config's parties as processes of one machine: their folders, the processes, and the run that follows them."""
