"""Parts of a page that need no script: its head, boxes of clients, what is said of each run."""
