"""What theory expects of a config before it is trained: `crosshatch plan`."""
