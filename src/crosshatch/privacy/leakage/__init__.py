"""What training tells of labels that are not known: counted by equations, over all runs on the same labels."""
