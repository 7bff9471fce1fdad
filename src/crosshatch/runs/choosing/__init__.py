"""What theory and trials choose before training."""
