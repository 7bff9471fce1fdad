"""Which data a run was made on: kept beside it, and asked for whenever its data are read again."""
