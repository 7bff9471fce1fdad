"""How good the model is, found by the parties themselves: a text of its own, counted apart from training."""
