"""What the package imports is declared in pyproject.toml, and CITATION.cff names the version given there."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from typing import Any

from tests.architecture.modules import ROOT, imports, modules

# The name to import where it differs from the name to install.
IMPORT_NAMES = {
    "grpcio": "grpc",
    "mlflow-skinny": "mlflow",
    "pillow": "PIL",
    "scikit-learn": "sklearn",
    "tomli-w": "tomli_w",
}


def project() -> dict[str, Any]:
    """The [project] table of pyproject.toml."""
    table: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return table


def import_names(requirements: list[str]) -> set[str]:
    """What to import for requirements such as `scikit-learn>=1.9`."""
    names = [re.split(r"[<>=!~;\[ ]", requirement)[0].lower() for requirement in requirements]
    return {IMPORT_NAMES.get(name, name.replace("-", "_")) for name in names}


def imported() -> dict[str, str]:
    """Every top-level package imported in src that is neither ours nor Python's, and one place that does."""
    found = {}
    for module in modules():
        for line, name in imports(module):
            top = name.split(".")[0]
            if top != "crosshatch" and top not in sys.stdlib_module_names:
                found[top] = f"{module.place}:{line}"
    return found


def extras() -> set[str]:
    """What users may install besides."""
    optional = project()["optional-dependencies"].items()
    return import_names([one for extra, many in optional if extra not in {"dev", "docs"} for one in many])


def test_imports_are_declared() -> None:
    declared = import_names(project()["dependencies"]) | extras()
    undeclared = {name: place for name, place in imported().items() if name not in declared}
    assert not undeclared, f"add these to pyproject.toml: {undeclared}"


def test_nothing_public_needs_an_extra() -> None:
    """As after a plain `pip install`: what a command or a class needs besides is imported when it is asked for."""
    absent = sorted(extras() - import_names(project()["dependencies"]))
    program = f"import sys; sys.modules |= dict.fromkeys({absent}); import crosshatch, crosshatch.cli;"
    program += "print(len([getattr(crosshatch, name) for name in crosshatch.__all__]))"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr[-1000:]


def test_citation_names_the_version() -> None:
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {project()['version']}\n" in citation
