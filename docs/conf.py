"""Settings of the documentation site: `sphinx-build -W docs site` with the extra `docs`."""

import re
import sys
from pathlib import Path
from typing import Any

from docutils.nodes import SkipNode
from latex2mathml.converter import convert

from dpviz.common.version import __version__

sys.path.insert(0, str(Path(__file__).parent))

project, author, release = "dpviz", "the dpviz authors", __version__
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
html_theme = "furo"
html_title = "dpviz"
html_math_renderer = "mathml"  # MathJax would be loaded from another host
exclude_patterns = ["_build"]
nb_execution_mode = "force"  # notebooks are kept without their outputs
nb_execution_raise_on_error = True
nb_execution_timeout = 300
myst_heading_anchors = 3
myst_enable_extensions = ["dollarmath"]
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
#: pages name files of the repository, which the site does not hold
suppress_warnings = ["myst.xref_missing"]


def _plain(app: Any, what: str, name: str, obj: object, options: object, lines: list[str]) -> None:
    """Docstrings are plain text: |x| is a norm and a name may end in an underscore."""
    lines[:] = [re.sub(r"(?<=\w)_(?!\w)", r"\\_", line.replace("|", r"\|")) for line in lines]


def _skip(app: Any, what: str, name: str, obj: object, skip: bool, options: object) -> bool | None:
    """Scikit-learn's own methods refer to its own pages."""
    return True if name.endswith(("_request", "metadata_routing")) else None


def _formula(writer: Any, node: Any) -> None:
    """Formulas are MathML, which browsers draw themselves."""
    writer.body.append(convert(node.astext(), display="block" if node.tagname == "math_block" else "inline"))
    raise SkipNode


def setup(app: Any) -> None:
    """Called by Sphinx."""
    import generate

    generate.write()
    app.add_html_math_renderer("mathml", (_formula, None), (_formula, None))
    app.connect("autodoc-process-docstring", _plain)
    app.connect("autodoc-skip-member", _skip)
