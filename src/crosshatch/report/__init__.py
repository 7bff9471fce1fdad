"""Reading run directories, comparing runs, and the report page."""
