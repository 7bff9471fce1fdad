"""Which runs and silos Theorem 1 of FedBCD is about; everything else is refused with the reason."""

from crosshatch.audit.audited_run import AuditedRun
from crosshatch.errors import RunError
from crosshatch.schedules import Adaptive
from crosshatch.task.optimisers import Adam
from crosshatch.theory import theorem_names


def audited_silos(run: AuditedRun, silo: str | None) -> tuple[int, ...]:
    """The silos to audit: the one named, or all that have features."""
    _require_covered(run)
    with_features = [j for j in range(len(run.task.blocks)) if run.data.silos[j].train.numel()]
    asked = with_features if silo is None else [run.number(silo)]
    for j in asked:
        name = run.task.names[j]
        if j not in with_features:
            raise RunError(f"{run.path}: silo '{name}' has the labels alone and no rows: name another silo")
        if run.linear_layer(j) is None:
            others = [run.task.names[i] for i in with_features if run.linear_layer(i) is not None]
            hint = f"audit another silo by --silo ({', '.join(others)}), or train" if others else "train"
            raise RunError(
                f"{run.path}: the block of silo '{name}' is not linear, Theorem 1 is about linear blocks: {hint} with "
                "model.block = 'linear'"
            )
    return tuple(asked)


def _require_covered(run: AuditedRun) -> None:
    config, name = run.config, run.algorithm
    if (
        theorem_names.FEDBCD not in config.algorithm.proved_by
    ):  # the paper's methods: both of its theorems are about them
        raise RunError(f"{run.path}: Theorem 1 is about 'fedbcd' and 'fedsgd', this run is of '{name}': audit another")
    broken = {
        f"model.fusion = '{config.model.fusion}'": run.task.head is not None
        and "scores must be the sum of what silos send",
        "privacy.encryption": config.privacy.encrypts
        and "gradients are rounded to fixed point: messages cannot be compared to 1e-9",
        f"model.l1 = {config.model.l1}": config.model.l1 > 0
        and "it acts on each weight alone, so turned weights take other steps",
        "optimiser.name = 'adam'": isinstance(config.optimiser, Adam)
        and "it divides each weight's step by that weight's own history, so turned weights take other steps",
        "algorithm.step_size": isinstance(config.algorithm.step_size, Adaptive)
        and "an adaptive schedule follows from estimates on the data",
        "codecs": bool(config.codecs)
        and "a codec rounds, and makes the last bit of a number a whole step: messages cannot be compared to 1e-9",
    }
    for setting, why in broken.items():
        if why:
            raise RunError(f"{run.path}: Theorem 1 cannot be checked with {setting}: {why}; audit a run without it")
