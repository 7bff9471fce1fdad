"""How Sphinx builds the documentation: `make docs`. Nothing is fetched from the network."""

from __future__ import annotations

from importlib.metadata import version as installed_version

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.writers.html5 import HTML5Translator

project = "Crosshatch"
author = "The Crosshatch developers"
project_copyright = author
version = release = installed_version("crosshatch")

extensions = ["myst_parser", "sphinx.ext.autodoc"]
exclude_patterns = ["_build"]
source_suffix = {".md": "markdown"}

html_theme = "furo"
html_title = f"Crosshatch {version}"
html_copy_source = False

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
html_math_renderer = "mathml"  # see setup: the usual one would load a script from the network

default_role = "code"  # `name` in a docstring is code, as in the Markdown pages
autodoc_member_order = "groupwise"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"


def setup(app: Sphinx) -> None:
    """Write formulas as MathML, which browsers draw by themselves."""
    app.add_html_math_renderer("mathml", (write_inline, None), (write_block, None))


def write_inline(translator: HTML5Translator, node: nodes.math) -> None:
    """A formula within a line."""
    translator.body.append(tex2mathml(node.astext()))
    raise nodes.SkipNode


def write_block(translator: HTML5Translator, node: nodes.math_block) -> None:
    """A formula on lines of its own."""
    translator.body.append(f'<div class="math">{tex2mathml(node.astext(), as_block=True)}</div>')
    raise nodes.SkipNode
