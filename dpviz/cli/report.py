"""`dpviz report`: one run as a self-contained HTML file, or as a notebook."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from dpviz.cli import one_run
from dpviz.common import files
from dpviz.common.validate import InvalidInput

FORMATS = (".html", ".ipynb")


def add(commands: Any) -> None:
    """Adds the subcommand to a parser's subparsers."""
    made = commands.add_parser(
        "report",
        help="write a run as one HTML file that works offline, or as a notebook",
        description="The run is a link of the app, a table, or options as for `dpviz run`.",
    )
    one_run.add(made)
    made.add_argument("--metric", default="", metavar="ID", help="how usefulness is measured, for example roc-auc")
    made.add_argument("--out", required=True, metavar="FILE", help="a .html or .ipynb file")
    made.set_defaults(command=run)


def run(options: argparse.Namespace) -> int:
    """Writes the file. Returns 0."""
    from dpviz.reporting import render, report_of
    from dpviz.reporting.notebook import notebook_of

    out = Path(options.out)
    if out.suffix.lower() not in FORMATS:
        raise InvalidInput("--out", f"must end in {' or '.join(FORMATS)}, got {out.name!r}", "Name a file with that ending.")
    spec = one_run.run_spec(options)
    link = options.file if one_run.is_link(options.file) else ""
    text = render(report_of(spec, link=link, metric=options.metric)) if out.suffix.lower() == ".html" else notebook_of(spec)
    try:
        files.write(out, text.encode())
    except OSError as error:
        raise InvalidInput(
            "--out", f"cannot be written: {error.strerror}", "Name a file in a folder that can be written."
        ) from error
    print(f"{out}: {len(text.encode()) / 1e6:.1f} MB")
    return 0
