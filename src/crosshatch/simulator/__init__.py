"""The simulator: every party's share of a round, computed in one process."""
