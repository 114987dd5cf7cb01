"""Options that stand for one run, shared by the commands that take one: a table, a link of the app, or options."""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlsplit

from dpviz.cli import answers, own_file
from dpviz.cli.parser import Parser
from dpviz.common.validate import InvalidInput, check_integer, number_from_text, show

if TYPE_CHECKING:
    from dpviz.experiments.run.spec import RunSpec


def add(parser: Parser) -> None:
    """Adds the options to a command."""
    parser.add_argument(
        "file", nargs="?", metavar="TABLE.csv|LINK", help="a table of your own (- reads standard input), or a link of the app"
    )
    own_file.add(parser)
    parser.add_settings()
    parser.add_argument(
        "--set", action="append", default=[], metavar="KNOB=VALUE", help="a knob of the mechanism; may be repeated"
    )


def is_link(text: str | None) -> bool:
    """True where text is an address of the app, or the part of one that holds a run; the name of an existing file is none.

    Raises:
        InvalidInput: it begins as one and is none.
    """
    if text is None or not text.startswith(("?", "http://", "https://")) or os.path.isfile(text):
        return False
    from dpviz.datasets.table.formats import SUFFIXES

    try:
        query = parse_qsl(urlsplit(text).query)
    except ValueError:
        raise InvalidInput("link", f"{show(text)} is no address", "Copy the whole address of the page.") from None
    if text.startswith("?") and text != "?" and (not query or text.lower().endswith(SUFFIXES)):
        raise InvalidInput(
            "link", f"{show(text)} is neither a file nor the settings of a run", "Check the name, or copy the address."
        )
    return True


def run_spec(options: argparse.Namespace) -> RunSpec:
    """The run that the options stand for, an automatic mechanism replaced by the one that a rule names; options win over a link.

    Raises:
        InvalidInput: for the first bad value, naming it.
    """
    from dpviz.datasets.sources import uploads
    from dpviz.experiments.run import links
    from dpviz.experiments.run.settings import SETTINGS
    from dpviz.experiments.run.spec import RunSpec
    from dpviz.mechanisms import list_mechanisms
    from dpviz.mechanisms.registry import AUTOMATIC

    link = is_link(options.file)
    query = links.drop_version(dict(parse_qsl(urlsplit(options.file).query, keep_blank_values=True))) if link else {}
    query |= {name: value for name in SETTINGS if (value := getattr(options, name)) is not None}
    dataset = own_file.dataset_name(options, None if link else options.file)
    if dataset is not None:
        query["dataset"] = dataset
    elif link and uploads.is_upload(query.get("dataset", "")):
        cause = f"{show(query['dataset'])} is an upload, which only the app's session holds"
        raise InvalidInput("dataset", cause, "Name its file in the place of the link, and what else the link sets as options.")
    mechanism = query.get("mechanism", RunSpec.mechanism)
    if mechanism == AUTOMATIC:
        mechanism = query["mechanism"] = _automatic(options, query)
    cls = list_mechanisms().get(mechanism)
    for item in options.set:
        knob, equals, value = item.partition("=")
        if not equals:
            raise InvalidInput("--set", f"needs KNOB=VALUE, got {item!r}", "For example: --set steps=20.")
        if cls is not None:
            cls.from_params({knob: cls.defaults()[knob]} if knob in cls.knobs() else {knob: None})
        query[f"{mechanism}.{knob}"] = value
    spec = RunSpec.from_query(query)
    answers.announce(options, spec.dataset)
    return spec


def _automatic(options: argparse.Namespace, query: dict[str, str]) -> str:
    """The method that the rule names for the rows, or for --n and --d; `options.why` says so in the answer."""
    from dataclasses import replace

    from dpviz.experiments.run.resolve import resolve
    from dpviz.experiments.run.setup import setting_of
    from dpviz.experiments.run.spec import RunSpec
    from dpviz.mechanisms.registry import automatic_mechanism
    from dpviz.models import get_model

    spec = RunSpec.from_query({name: value for name, value in query.items() if name != "mechanism"})
    n, d = (getattr(options, name, None) for name in ("n", "d"))
    if n is None or d is None:
        setting = setting_of(spec)
    else:
        n, d = (check_integer(f"--{name}", number_from_text(f"--{name}", text), 1, 2**53) for name, text in (("n", n), ("d", d)))
        setting = get_model(spec.model).setting(n, d, 1.0)
    if getattr(options, "private_ranges", False) or getattr(options, "values", None) is not None:
        # private categories decide the number of features, and a search counts releases with a Rényi curve: as for many
        setting = replace(setting, d=10**12)
    epsilon, knobs = resolve(spec).budget.epsilon, [item.partition("=")[0] for item in options.set]
    name, options.why = automatic_mechanism(setting, epsilon, knobs)
    return name


def option_value(options: argparse.Namespace, name: str) -> str | None:
    """The value of a command's option, else that of the link under the same name; None where neither has one."""
    value = getattr(options, name, None)
    if value is not None or not is_link(options.file):
        return None if value is None else str(value)
    from dpviz.experiments.run import links

    return links.drop_version(dict(parse_qsl(urlsplit(options.file).query))).get(name)


def display_name(dataset: str, options: argparse.Namespace) -> str:
    """The name of the rows in an answer."""
    return own_file.display_name(dataset, None if is_link(options.file) else options.file)
