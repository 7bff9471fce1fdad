"""The numbers of each exchange of a vertical federation."""
