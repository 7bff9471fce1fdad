"""The model of a finished run: written, read again and put to work."""
