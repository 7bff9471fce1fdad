"""The commands of `crosshatch audit`: their options and their help."""

from typing import Annotated

import typer

from crosshatch.cli.model_commands import OneRun
from crosshatch.cli.options import AsJson, DataFolder, option


def theorem1(
    run: OneRun,
    silo: Annotated[str | None, option("--silo", "NAME", "Whose data; if left out, those of every silo.")] = None,
    private_start: Annotated[
        bool,
        typer.Option(
            "--private-start",
            help="Take the silo's initial weights for known to it alone; if left out, others know them from the seed.",
        ),
    ] = False,
    data: DataFolder = None,
    as_json: AsJson = False,
) -> None:
    """Check FedBCD's Theorem 1 on the messages of a run.

    RUN is a run directory of fedbcd or fedsgd with linear blocks, trained with run.record_messages = true. Finds other
    data and weights for a silo, runs the whole training again with them and compares all messages; then shows what is
    recovered where a condition of the theorem fails. Writes audit_theorem1.json into the run directory.

    \b
    Example:
      crosshatch train mine.toml --set run.record_messages=true --out runs/recorded
      crosshatch audit theorem1 runs/recorded
    """
    from crosshatch.cli.auditing.show_audit import show_theorem1

    show_theorem1(run, silo=silo, private_start=private_start, data=data, as_json=as_json)


def attacks(run: OneRun, data: DataFolder = None, as_json: AsJson = False) -> None:
    """Attack a run: labels, columns, rows.

    RUN is a run directory, trained with run.record_messages = true. Uses what each silo saw in all rounds: labels by
    derivatives or, in an encrypted run, by the gradients read; columns by blind separation of scores; rows by a decoder
    and by the gradient of one sample. Says of each attack what it took for known, how far it gets, what chance and the
    columns alone give, and what would lower it. Writes audit_attacks.json into the run directory.

    \b
    Example:
      crosshatch audit attacks runs/recorded
    """
    from crosshatch.cli.auditing.show_audit import show_attacks

    show_attacks(run, data=data, as_json=as_json)
