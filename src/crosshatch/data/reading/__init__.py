"""Where data comes from: files, built-in sets, the data folder."""
