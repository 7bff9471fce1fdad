"""Pictures that need no script: federations, graphs of agents, and bars of bytes."""
