"""Transfer between two silos: a side room, which a task knows as its `Tie`."""
