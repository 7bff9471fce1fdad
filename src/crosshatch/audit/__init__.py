"""What a run gives away: a theorem checked on its messages, and attacks on it with figures."""
