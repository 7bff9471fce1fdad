"""The README's second example: TDCD on two silos of five clients, in Python."""

import crosshatch as ch

silos = (ch.SiloSettings("imaging", groups=("mean",)), ch.SiloSettings("laboratory", groups=("error", "worst")))
data = ch.federate(ch.load_dataset("breast_cancer"), ch.FederationSettings(silos=silos, clients=5), seed=0)
task = ch.build_task(data, ch.ModelSettings(block="linear"), seed=0)
simulator = ch.Simulator(data, task, ch.TDCD(local_steps=10, step_size=0.1, batch_size=64), seed=0)
for _ in range(30):
    simulator.run_round()
print(f"AUC {simulator.evaluate()['auc']:.4f} with {simulator.meter.bytes:,} bytes in {simulator.round} rounds")
