"""One simulation on several workers: who computes forward passes and local steps, in fixed pieces of clients."""
