"""How Sphinx builds the documentation: `make docs`. Nothing is fetched from the network."""

from __future__ import annotations

from importlib.metadata import version as installed_version

project = "Crosshatch"
author = "The Crosshatch developers"
project_copyright = author
version = release = installed_version("crosshatch")

extensions = ["myst_parser", "sphinx.ext.autodoc"]
exclude_patterns = ["_build"]
source_suffix = {".md": "markdown"}
suppress_warnings = ["toc.empty_glob"]  # a chapter may have no pages yet

html_theme = "furo"
html_title = f"Crosshatch {version}"
html_copy_source = False

myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 3
html_math_renderer = "mathjax"

default_role = "code"  # `name` in a docstring is code, as in the Markdown pages
autodoc_member_order = "groupwise"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
