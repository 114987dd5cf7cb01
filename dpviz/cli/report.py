"""`dpviz report`: any page as a self-contained HTML file, a run as a notebook, or all pages as a folder."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlsplit

from dpviz.cli import answers, gallery, metrics, one_run, output
from dpviz.cli.parser import Parser, refuse
from dpviz.cli.progress import Bar
from dpviz.common.validate import InvalidInput

if TYPE_CHECKING:
    from dpviz.experiments.run.spec import RunSpec

FORMATS = (".html", ".ipynb")

HELP = "write a page as one HTML file that works offline, a run as a notebook, or all pages"
DESCRIPTION = (
    "The page is that of a whole link of the app, or --page with a table or options as for `dpviz run`; without "
    "one, the report is about the run itself. --all writes lessons, slides of them, pages and figures of the papers to a folder."
)


def add(parser: Parser) -> None:
    """Adds the options."""
    one_run.add(parser)
    parser.add_argument("--page", metavar="NAME", help="a page of the app, for example Audit; that of the link by default")
    parser.rest.add_argument("--rows", action="store_true", help="show single real rows too; the report then reveals data")
    parser.add_argument("--metric", metavar="ID", help="how usefulness is measured, for example roc-auc")
    output.add_place(parser, "a .html or .ipynb file, or with --all a new folder", required=True)
    parser.add_argument("--all", action="store_true", help="write everything, with links to the app, without real rows")
    gallery.add(parser.rest)


def run(options: argparse.Namespace) -> None:
    """Writes the file or the folder."""
    if options.all:
        refuse(options, ("file", "page", "rows", "metric", "overwrite"), "cannot go with --all")
        gallery.run(options)
    else:
        refuse(options, gallery.OPTIONS, "belongs to --all")
        _write(options)


def _write(options: argparse.Namespace) -> None:
    from dpviz.experiments.run.resolve import resolve
    from dpviz.reporting import render, report_of
    from dpviz.reporting.notebook import notebook_of

    out = output.place(options, FORMATS)
    assert out is not None  # it is required
    kind = out.suffix.lower()
    spec = one_run.run_spec(options)
    link = options.file if one_run.is_link(options.file) else ""
    page = options.page or _page_of(link, kind)
    if page is not None and kind != ".html":
        raise InvalidInput("--out", "a notebook is about the run, not about a page", "Leave the page out, or write a .html file.")
    with Bar() as bar:
        if page is not None:
            text = _page(spec, page, link, options, bar)
        elif kind == ".html":
            text = render(report_of(spec, bar, link=link, metric=options.metric or ""))
        else:
            text = notebook_of(spec)
    output.save(out, text.encode())
    size = len(text.encode())
    answers.give(options, f"{out}: {size / 1e3:,.0f} kB", {"run": answers.run(resolve(spec)), "out": out, "bytes": size})


def _page_of(link: str, kind: str) -> str | None:
    """The path of the page that a whole link opens, "" for the first one; None where the report is about the run."""
    address = urlsplit(link)
    path = address.path.strip("/")
    return path if path or (address.netloc and kind == ".html") else None


def _page(spec: RunSpec, name: str, link: str, options: argparse.Namespace, bar: Bar) -> str:
    """The report of a page: what it shows at the run's address, with what the link says beside the run."""
    from dpviz.cli.main import app_script
    from dpviz.dashboard.frame import headless
    from dpviz.experiments.run import links
    from dpviz.experiments.run.settings import SETTINGS

    beside = links.drop_version(dict(parse_qsl(urlsplit(link).query, keep_blank_values=True)))
    query = links.add_version({k: v for k, v in beside.items() if k not in SETTINGS and "." not in k} | spec.to_query())
    if options.metric:
        query["metric"] = metrics.chosen_metrics([options.metric])[0].id
    script = app_script()
    page = headless.record_page(script, headless.page_of(script, name), query, bar)
    assert page.run is not None  # every page has the controls of a run
    return page.html(*page.run, rows=options.rows, link=link)
