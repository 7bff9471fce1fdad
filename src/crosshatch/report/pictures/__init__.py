"""Parts of a page that need no script: its head, and what is said of each run."""
