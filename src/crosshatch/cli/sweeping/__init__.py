"""`crosshatch sweep`: from its options to its table, and how it is watched."""
