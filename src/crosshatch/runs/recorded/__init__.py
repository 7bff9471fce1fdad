"""What silos sent each other in a run: written while it trains, read by audits."""
