"""Answers of commands: lines for people, or one JSON document with `--json`."""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
import shutil
import sys
import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TextIO

from dpviz.common.validate import InvalidInput
from dpviz.common.version import __version__

if TYPE_CHECKING:
    import pandas as pd

    from dpviz.datasets import Dataset
    from dpviz.experiments.run.resolve import ResolvedRun
    from dpviz.mechanisms import Calibration, Mechanism
    from dpviz.mechanisms.attack import Attack
    from dpviz.privacy.budget import Budget

#: version of the JSON documents: a key that is there keeps its name and its meaning until this number rises
SCHEMA = 1
#: the command that prints nothing that is a function of private rows, but what the released model shows
PUBLISHING = "release"


def give(
    options: argparse.Namespace, lines: Sequence[tuple[str, object]] | str, values: Mapping[str, Any], *tables: pd.DataFrame
) -> None:
    """Prints an answer: lines and tables for people, or its values as JSON.

    Args:
        options: of the command; where they have a `why`, it is the first line (`one_run`).
        lines: (name, value); a line whose name is "" goes on with the one before. Or text as it is.
        values: plain values, tables included; see `plain`.
    """
    if options.json:
        document(values, options.name_of_command)
        return
    if hasattr(options, "why") and options.name_of_command != "report":
        line("method", options.why)
    if isinstance(lines, str):
        print(lines)
    else:
        for name, value in lines:
            line(name, value)
    for one in tables:
        print(table(one))


def line(name: str, value: object, stream: TextIO | None = None) -> None:
    """Prints a line with its name before it; on a terminal it is wrapped at its width."""
    print_wrapped(f"{name + ':' if name else '':19}{value}", 19, stream)


def print_wrapped(text: str, indent: int = 0, stream: TextIO | None = None) -> None:
    """Prints a line; on a terminal it is wrapped at its width, and what follows is indented."""
    stream = stream or sys.stdout
    width = _width(stream)
    if width is not None:
        text = textwrap.fill(text, width, subsequent_indent=" " * indent, break_on_hyphens=False)
    print(text, file=stream)


def _width(stream: TextIO) -> int | None:
    """Columns of a terminal; None for a file or a pipe, whose lines stay whole."""
    return max(40, shutil.get_terminal_size().columns - 1) if stream.isatty() else None


def announce(options: argparse.Namespace, dataset: str, stream: TextIO | None = None) -> None:
    """Says of a person's table which column is the label, which value is +1, how it was read, and what is to be remarked.

    How it was read and what is remarked are functions of private rows, so a command whose output may be published says neither.
    """
    if options.json:
        return
    about = _about(dataset)
    if about is None:
        return
    line("label", about.label.sentence if about.label else "", stream)
    if options.name_of_command == PUBLISHING:
        return
    notes = [("read", note) for note in about.notes] + [("remark", remark) for remark in about.remarks]
    for name, text in notes:
        line(name, text, stream)


def _about(dataset: object) -> Dataset | None:
    """A person's own table; None for any other dataset."""
    from dpviz.datasets import load_dataset
    from dpviz.datasets.sources import folder, own

    if not isinstance(dataset, str) or not (own.is_own(dataset) or dataset.startswith(folder.PREFIX)):
        return None
    try:
        return load_dataset(dataset)
    except InvalidInput:  # an error where the command needs it
        return None


def _label(values: Mapping[str, Any], command: str) -> dict[str, Any]:
    """The label of the table that an answer is about, and remarks on it."""
    place = next((values[key] for key in ("run", "sweep") if isinstance(values.get(key), Mapping)), values)
    about = _about(place.get("dataset"))
    if about is None or about.label is None:
        return {}
    label = about.label
    return {
        "label": {"column": label.column, "positive": label.positive, "negative": label.negative, "guessed": label.guessed}
    } | ({} if command == PUBLISHING else {"remarks": about.remarks, "notes": about.notes})


def document(values: Mapping[str, Any], command: str) -> None:
    """Prints one JSON document; see `text`."""
    print(text(values, command), end="")


def text(values: Mapping[str, Any], command: str) -> str:
    """One JSON document; it opens with the command, the version and that of the schema."""
    head = {"command": command, "version": __version__, "schema": SCHEMA}
    return json.dumps(json_value(head | _label(values, command) | dict(values)), indent=1, allow_nan=False) + "\n"


def json_value(value: Any) -> Any:
    """A value as JSON has it: NaN becomes null, an infinite number "infinity" or "-infinity", a table a list of its rows."""
    import numpy as np
    import pandas as pd

    if isinstance(value, pd.DataFrame):
        return [json_value(row) for row in value.to_dict("records")]
    if isinstance(value, Mapping):
        return {str(key): json_value(one) for key, one in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return json_value(value.tolist())
    if isinstance(value, list | tuple):
        return [json_value(one) for one in value]
    if isinstance(value, float):
        return None if math.isnan(value) else value if math.isfinite(value) else ("infinity" if value > 0 else "-infinity")
    return value if value is None or isinstance(value, bool | int) else str(value)


def budget(value: Budget | None) -> dict[str, float] | None:
    """A budget as values; None for none."""
    return None if value is None else {"epsilon": value.epsilon, "delta": value.delta}


def run(resolved: ResolvedRun) -> dict[str, Any]:
    """The run that was asked about: all that decides its numbers."""
    return resolved.spec.to_dict() | {"delta": resolved.budget.delta}


def guarantee(cal: Calibration, of: Mechanism) -> dict[str, Any]:
    """A mechanism's calibration as values."""
    from dpviz.mechanisms.persons import privacy_unit
    from dpviz.papers.saved import refutation

    audited = refutation(of, cal)
    skipped = "row_calibration method_budget person_rows budget proved_budget claimed_budget status".split()
    skipped += "preparation_mu preparation_epsilon noise_family neighbouring for_training mu details".split()
    rest = {f.name: getattr(cal, f.name) for f in dataclasses.fields(cal) if f.name not in skipped}
    return {
        "asked": budget(cal.budget),
        "status": cal.status.value,
        "noise_family": str(cal.noise_family),
        "sentence": cal.sentence,
        "proved": budget(cal.proved_budget),
        "claimed": budget(cal.claimed_budget),
        "refuted": None if audited is None else {"day": str(audited.day), **(budget(audited.budget) or {})},
        "relation": cal.neighbouring.value,
        "unit": privacy_unit(cal.person_rows),
        **rest,
    }


def guarantee_lines(cal: Calibration, of: Mechanism) -> list[tuple[str, object]]:
    """The same for people."""
    from dpviz.mechanisms.persons import privacy_unit
    from dpviz.papers.saved import refutation

    audited = refutation(of, cal)
    return [
        ("budget asked for", cal.budget),
        *([] if audited is None else [("refuted", audited.words)]),
        ("guarantee", f"{cal.sentence}; proved: {cal.proved_budget or 'nothing'}; {cal.neighbouring.value}"),
        *([("unit", f"ε is for {privacy_unit(cal.person_rows)}")] if cal.person_rows else []),
        ("accountant", cal.accountant),
        ("noise", f"{cal.noise_text}; sensitivity: {cal.sensitivity_text}"),
    ]


def remarks(cal: Calibration) -> list[tuple[str, object]]:
    """Conditions and notes of a calibration."""
    return [*[("only if", condition) for condition in cal.conditions], *[("note", note) for note in cal.notes]]


def attack(best: Attack | None) -> dict[str, Any] | None:
    """The best possible attack as values; None where nothing is proved."""
    if best is None:
        return None
    return {"accuracy": best.accuracy, "accuracy_by_budget": best.accuracy_by_budget, "basis": best.basis}


def table(frame: pd.DataFrame) -> str:
    """A table for people, in columns of one width."""
    width = _width(sys.stdout)
    return str(frame.to_string(index=False, na_rep="-", float_format=lambda value: f"{value:.6g}", line_width=width))
