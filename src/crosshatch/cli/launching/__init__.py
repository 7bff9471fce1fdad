"""`crosshatch launch`."""
