"""Tables that are written as text: how a file is laid out, and what its cells mean."""
