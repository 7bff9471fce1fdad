"""A config's tables: overridden by the command line, and read into settings."""
