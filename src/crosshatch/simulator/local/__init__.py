"""Local steps, the hot loop: all clients of all silos take Q steps with their own copies of the weights."""
