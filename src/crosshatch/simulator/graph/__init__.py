"""The numbers of each exchange on a graph."""
