"""Attacks on labels, by a silo that does not hold them, from what it was told in all rounds."""
