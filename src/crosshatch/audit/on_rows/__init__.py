"""Attacks on a silo's rows, by whoever gets what it sends, from the messages of all rounds."""
