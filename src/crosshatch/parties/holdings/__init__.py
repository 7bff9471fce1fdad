"""What one party holds: what all agreed on, its part of the model and of every value, its own rows."""
