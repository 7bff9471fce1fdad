"""`crosshatch study`: from its options to its sentences."""
