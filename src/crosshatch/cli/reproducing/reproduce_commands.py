"""The commands of `crosshatch reproduce`: their options and their help."""

from pathlib import Path
from typing import Annotated

import typer

from crosshatch.cli.options import AsJson, DataFolder, Jobs, leads_somewhere, option
from crosshatch.cli.plain_command import PlainCommand

Ids = Annotated[
    list[str], typer.Argument(metavar="ID", help="Recipes, papers such as mtcd, or all.", show_default=False)
]
WhichProfile = Annotated[
    str, typer.Option("--profile", metavar="quick|full", help="Small sizes and three seeds, or the papers' and five.")
]
Out = Annotated[
    Path,
    typer.Option("--out", metavar="DIR", help="The folder with runs, results and pages.", callback=leads_somewhere),
]
OUT = Path("reproduced")


def list_recipes(
    profile: WhichProfile = "quick",
    out: Out = OUT,
    data: DataFolder = None,
    as_json: AsJson = False,
) -> None:
    """List the recipes: what each shows, its data, how many of its runs are known, the time it may take.

    \b
    Example:
      crosshatch reproduce list --profile quick
    """
    from crosshatch.cli.reproducing.run_reproduce import show_list

    show_list(profile, out, data, as_json=as_json)


def run(
    ids: Ids,
    profile: WhichProfile = "quick",
    jobs: Jobs = None,
    out: Out = OUT,
    data: DataFolder = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Train again what is known already.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors and verdicts.")] = False,
) -> None:
    """Train what is missing for some recipes, judge them, and write their pages.

    Runs lie in runs/ of the folder and are shared by all recipes: nothing is trained twice. Ctrl-C keeps what is done,
    and the same command goes on. A recipe whose data are absent, or that takes too long, is "not run" and stops no
    other.

    \b
    Example:
      crosshatch reproduce run all --profile quick --data ~/data
    """
    from crosshatch.cli.reproducing.run_reproduce import run_reproduce

    raise typer.Exit(run_reproduce(ids, profile, jobs=jobs, out=out, data=data, fresh=fresh, quiet=quiet))


def page(
    profile: WhichProfile = "quick",
    out: Out = OUT,
    data: DataFolder = None,
    docs: Annotated[Path | None, option("--docs", "FILE", "Also write verdicts as a Markdown page.")] = None,
) -> None:
    """Write verdicts, figures and pages anew from the runs there are, half-way too; trains nothing.

    \b
    Example:
      crosshatch reproduce page --out reproduced
    """
    from crosshatch.cli.reproducing.run_reproduce import write_pages

    write_pages(profile, out, data, docs)


reproduce = typer.Typer(
    rich_markup_mode=None,
    help="""Make the papers' tables and figures anew, with a verdict each.

    \b
    Example:
      crosshatch reproduce run mtcd-fig3 --out reproduced
    """,
)
reproduce.command("list", cls=PlainCommand)(list_recipes)
reproduce.command("run", cls=PlainCommand)(run)
reproduce.command("page", cls=PlainCommand)(page)
