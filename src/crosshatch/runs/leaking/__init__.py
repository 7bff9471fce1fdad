"""What a run tells of labels that one silo holds: settled before it, counted, refused where it is too much."""
