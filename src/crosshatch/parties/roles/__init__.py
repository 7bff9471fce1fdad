"""Each role's own half of every exchange of a vertical federation."""
