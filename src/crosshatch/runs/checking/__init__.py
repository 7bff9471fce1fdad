"""What was understood of a config and its files, before anything is trained."""
