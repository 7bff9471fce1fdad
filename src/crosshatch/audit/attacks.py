"""Attacks on a run that need no theorem: on labels, on embeddings, on gradients."""

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path

from crosshatch.audit.attack_findings import AttackFindings
from crosshatch.audit.audited_run import AuditedRun, open_run
from crosshatch.audit.on_labels.label_attacks import attack_labels
from crosshatch.audit.on_labels.transfer_attacks import attack_transfer
from crosshatch.audit.on_rows.gradient_attack import attack_gradients
from crosshatch.audit.on_rows.row_attacks import attack_rows
from crosshatch.errors import ConfigError, RunError
from crosshatch.exchanges import on_silos


@dataclass(frozen=True)
class Attacks:
    """All attacks on a run, `rounds` after its start."""

    run: str
    algorithm: str
    rounds: int
    findings: tuple[AttackFindings, ...]


def audit_attacks(
    run: Path | str, *, folder: Path | None = None, progress: Callable[[str], None] = lambda _: None
) -> Attacks:
    """Attack a run with what other silos see of it in all recorded rounds, and say how far that gets.

    Labels by derivatives or, where these travel encrypted, by the gradients that silos read; columns by blind
    separation and rows by a decoder of what silos sent; rows by the gradient of a single sample. `progress` is told of
    each attack that is done. Findings are also written into the run directory, as `audit_attacks.json`.

    >>> import tempfile
    >>> from crosshatch import read_config, train
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     config = Path(folder, "cancer.toml")
    ...     written = config.write_text('data = {name = "breast_cancer"}\\nfederation = {labels = "silo2"}')
    ...     changes = ["algorithm.name=fedbcd", "run.rounds=20", "run.threads=1", "run.record_messages=true"]
    ...     outcome = train(read_config(config, changes), out=Path(folder, "run"))
    ...     found = audit_attacks(Path(folder, "run"))
    >>> found.findings[0].attack, found.findings[0].figures["accuracy by sign"]
    ('labels by derivatives', 1.0)
    """
    with open_run(run, folder) as audited:
        found = _attack(audited, progress)
        audited.write("attacks", asdict(found))
    return found


def _attack(audited: AuditedRun, progress: Callable[[str], None]) -> Attacks:
    if not on_silos(audited.config.algorithm):
        raise RunError(
            f"{audited.path}: attacks are on what silos send, '{audited.algorithm}' runs on a graph: audit a run with "
            "another algorithm"
        )
    trained, silos = audited.trained(), range(len(audited.task.blocks))
    findings = []
    try:
        _ = audited.heard
    except ConfigError as error:
        seen: Iterable[AttackFindings] = [AttackFindings("messages", "all silos", why=f"not tried: {error}")]
    else:
        rows = (finding for silo in silos for finding in attack_rows(audited, silo))
        labels = attack_labels(audited) if audited.task.transfer is None else attack_transfer(audited)
        seen = chain(labels, rows)
    for finding in chain(seen, attack_gradients(audited, trained)):
        progress(f"{finding.attack}, {finding.target}")
        findings.append(finding)
    return Attacks(str(audited.path), audited.algorithm, trained.round, tuple(findings))
