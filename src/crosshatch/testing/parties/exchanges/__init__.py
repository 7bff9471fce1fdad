"""The exchanges between clients, hubs, branches and servers."""
