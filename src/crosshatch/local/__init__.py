"""The steps at one party, and the ways to compute them."""
