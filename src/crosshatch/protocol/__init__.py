"""What all parties agree on without a message."""
