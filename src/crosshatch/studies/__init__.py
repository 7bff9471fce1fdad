"""Does it pay? Each silo alone, all columns in one place and the federation, on the same rows, with intervals."""
