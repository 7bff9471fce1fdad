"""Curves as files for papers and slides, by matplotlib, which the extra `figures` installs."""
