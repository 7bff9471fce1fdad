"""From a recipe to finished runs: plans, keys, jobs, choices."""
