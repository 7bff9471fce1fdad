"""Attacks on a run that need no theorem: on labels, on embeddings, on gradients."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path

from crosshatch.audit.attack_findings import AttackFindings
from crosshatch.audit.audited_run import AuditedRun, open_run
from crosshatch.audit.decoder_attack import attack_embeddings
from crosshatch.audit.gradient_attack import attack_gradients
from crosshatch.audit.label_attack import attack_labels
from crosshatch.errors import RunError
from crosshatch.exchanges import on_silos


@dataclass(frozen=True)
class Attacks:
    """All attacks on a run, `rounds` after its start."""

    run: str
    algorithm: str
    rounds: int
    findings: tuple[AttackFindings, ...]


def audit_attacks(run: Path | str, *, folder: Path | None = None) -> Attacks:
    """Attack a run with what other silos see of it, and say how far that gets.

    Labels by recorded derivatives, rows by a decoder of the trained embeddings and by the gradient of a single sample.
    Findings are also written into the run directory, as `audit_attacks.json`.

    >>> import tempfile
    >>> from crosshatch import read_config, train
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     config = Path(folder, "cancer.toml")
    ...     written = config.write_text('data = {name = "breast_cancer"}\\nfederation = {labels = "silo2"}')
    ...     changes = ["algorithm.name=fedbcd", "run.rounds=20", "run.threads=1", "run.record_messages=true"]
    ...     outcome = train(read_config(config, changes), out=Path(folder, "run"))
    ...     found = audit_attacks(Path(folder, "run"))
    >>> found.findings[0].attack, found.findings[0].figures["accuracy by sign"]
    ('label by derivative', 1.0)
    """
    with open_run(run, folder) as audited:
        found = _attack(audited)
        audited.write("attacks", asdict(found))
    return found


def _attack(audited: AuditedRun) -> Attacks:
    if not on_silos(audited.config.algorithm):
        raise RunError(
            f"{audited.path}: attacks are on what silos send, '{audited.algorithm}' runs on a graph: audit a run with "
            "another algorithm"
        )
    if audited.task.transfer is not None:
        raise RunError(
            f"{audited.path}: the attacks know scores, embeddings and derivatives, a transfer task sends components "
            "instead: what these give away is in docs/algorithms/transfer.md and docs/howto/encryption.md"
        )
    trained = audited.trained()
    return Attacks(
        str(audited.path), audited.algorithm, trained.round,
        (*attack_labels(audited), *attack_embeddings(audited, trained), *attack_gradients(audited, trained)),
    )  # fmt: skip
