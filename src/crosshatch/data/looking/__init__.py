"""A look at what was read: what columns are, and what should not be left unsaid of columns, ids and labels."""
