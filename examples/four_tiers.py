"""Four tiers: two regions of three groups, in each group two silos of three clients.

Clients are averaged every 5 local steps, embeddings move every 10, groups are averaged every 20 within their region and
every 40 across regions.
"""

from __future__ import annotations

from crosshatch import FederationSettings, ModelSettings, Simulator, Tiered, build_task, federate, load_dataset


def main() -> None:
    """Train on handwritten digits, left and right halves, and say where the bytes went."""
    settings = FederationSettings(split="halves", clients=3, groups=(2, 3))
    data = federate(load_dataset("digits"), settings, seed=0)
    task = build_task(data, ModelSettings(block="mlp", hidden=(16,)), seed=0)
    algorithm = Tiered(tiers="H(40) H(20) V(10) H(5)", step_size=0.2, batch_size=64)
    simulator = Simulator(data, task, algorithm, seed=0)
    for _ in range(40):
        simulator.run_round()
    print(f"accuracy {simulator.evaluate()['accuracy']:.4f} after {simulator.iteration} local steps")
    for link, (size, messages) in simulator.meter.links.items():
        print(f"{link:<18} {size:>12,} bytes in {messages:>6,} messages")


if __name__ == "__main__":
    main()
