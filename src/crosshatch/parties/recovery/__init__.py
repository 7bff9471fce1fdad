"""What a party keeps so that it can go on after a crash: its messages and its state."""
