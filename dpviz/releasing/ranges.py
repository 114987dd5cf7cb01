"""Ranges and categories of a table of one's own, found privately as a part of a release."""

import random
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from dpviz.common.validate import InvalidInput
from dpviz.datasets import Dataset
from dpviz.datasets.sources import own
from dpviz.datasets.table.columns import word
from dpviz.datasets.table.encoder import NUMBER
from dpviz.datasets.table.sidecar import declarations
from dpviz.experiments.run.settings import AS_DECLARED, PRIVATE
from dpviz.experiments.run.spec import RunSpec
from dpviz.mechanisms import Calibration
from dpviz.mechanisms.knobs import AUTOMATIC
from dpviz.mechanisms.persons import budget_of_row
from dpviz.mechanisms.registry import automatic_mechanism
from dpviz.models import get_model
from dpviz.preparing.ranges import PUBLIC_KINDS
from dpviz.privacy.budget import Budget
from dpviz.privacy.private_ranges import private_ranges, total_budget
from dpviz.spending.ledger import Entry


def texts_of(frame: pd.DataFrame, names: Sequence[str]) -> dict[str, pd.Series]:
    """Columns of categories as texts, gaps left as they are."""
    return {name: frame[name].map(word, na_action="ignore").astype(object) for name in names}


def method_of_few_rows(model: str) -> str:
    """The method that an automatic one stands for where n epsilon is small.

    The rule needs the number of features, which private categories change, and a search counts releases that have a Rényi curve.
    """
    return automatic_mechanism(get_model(model).setting(1, 1, 1.0), 0.0)[0]


def name_method(spec: RunSpec) -> RunSpec:
    """The run with `method_of_few_rows` in the place of an automatic method."""
    return replace(spec, mechanism=method_of_few_rows(spec.model)) if spec.mechanism == AUTOMATIC else spec


def parse_ranges(spec: RunSpec, private_ranges: bool) -> tuple[RunSpec, bool, bool]:
    """(the run with ranges as declared, whether some are to be found privately, whether those of all number columns are)."""
    every = spec.ranges == PRIVATE
    if private_ranges or every:
        spec = name_method(spec)
    return replace(spec, ranges=AS_DECLARED), private_ranges or every, every


def undeclared_columns(dataset: Dataset, every: bool) -> tuple[list[str], list[str]]:
    """(columns of numbers, columns of categories) whose range or categories were read from the rows.

    Args:
        every: all columns of numbers, as in a run with private ranges.

    Raises:
        InvalidInput: the rows are no table of one's own, all is declared, or columns were chosen by their values, which no range
            can mend.
    """
    if not own.is_own(dataset.name) or dataset.encoder is None:
        raise InvalidInput(
            "ranges",
            "of a release are found privately in tables of your own, named as a file or made by dpviz.dataset",
            "Use one of these, or take ranges as declared.",
        )
    columns, read = dataset.encoder.columns, dataset.looked_at
    kinds = {c.name: c.kind for c in columns if c.name in read or (every and c.kind == NUMBER)}
    if not kinds:
        raise InvalidInput("ranges", "are declared already, so none is to be found", "Leave out private ranges.")
    chosen = [name for name in read if name not in kinds]
    if chosen:
        cause = f"{', '.join(chosen[:3])} were left out because of their values"
        raise InvalidInput("columns", f"{cause}, which private ranges cannot mend", "Name the features yourself.")
    return [n for n, kind in kinds.items() if kind == NUMBER], [n for n, kind in kinds.items() if kind != NUMBER]


def declare_privately(spec: RunSpec, dataset: Dataset, budget: Budget, source: random.Random, every: bool) -> RunSpec:
    """The run on the same rows, whose undeclared ranges and categories are now private ones.

    Of a table of persons only the rows that are kept are looked at, at most k of a person, so that a row has the budget of
    which k together are within `budget` (`budget_of_row`).

    Args:
        spec: a run on a table of one's own.
        dataset: of that run.
        budget: of all ranges and categories together, for a person where the table names persons.
        source: of their noise.
        every: as of `undeclared_columns`.

    Raises:
        InvalidInput: see `undeclared_columns`; or nothing can be seen at this budget.
    """
    numbers, categories = undeclared_columns(dataset, every)
    content, frame = own.get(spec.dataset), dataset.frame
    values, for_row = {name: frame[name].to_numpy(float) for name in numbers}, budget_of_row(budget, dataset.person_rows)
    try:
        found = private_ranges(values, for_row, source, categories=texts_of(frame, categories))
    except InvalidInput as problem:
        fix = f"Declare what is public knowledge, here with round ranges: {declarations(dataset)}. Or choose a larger ε."
        raise InvalidInput(problem.field, problem.cause, fix) from problem
    table = replace(
        content.spec,
        ranges={**content.spec.ranges, **found.ranges},
        categories={**content.spec.categories, **found.categories},
        proposed=tuple(name for name in content.spec.proposed if name not in (*numbers, *categories)),
    )
    return replace(spec, dataset=own.hold(replace(content, spec=table)))


def compare_ranges(dataset: Dataset, budget: Budget) -> pd.DataFrame:
    """Private ranges and categories of all columns beside what the rows hold; it shows private rows.

    Returns:
        One row a column: column, rows (range or number of categories in the rows), private (likewise), outside (share of rows
        that the private ones clip or put into no category).

    Raises:
        InvalidInput: there is no column, or nothing can be seen at this budget.
    """
    columns = () if dataset.encoder is None else dataset.encoder.columns
    numbers = {c.name: dataset.frame[c.name].to_numpy(float) for c in columns if c.kind == NUMBER}
    texts = texts_of(dataset.frame, [c.name for c in columns if c.kind != NUMBER])
    found = private_ranges(numbers, budget_of_row(budget, dataset.person_rows), categories=texts)
    lines = []
    for name, values in numbers.items():
        low, high = found.ranges[name]
        held = f"{np.nanmin(values):g} to {np.nanmax(values):g}"
        lines.append((name, held, f"{low:g} to {high:g}", float(((values < low) | (values > high)).mean())))
    for name, words in texts.items():
        listed = found.categories[name]
        lines.append(
            (name, f"{words.nunique():,} categories", f"{len(listed):,} categories", float((~words.isin(listed)).mean()))
        )
    return pd.DataFrame(lines, columns=["column", "rows", "private", "outside"])


def add_range_cost(cal: Calibration, whole: Budget, of_ranges: Budget | None, what: str = "ranges and categories") -> Calibration:
    """The calibration of a model with the cost of its private ranges, or of `what`; `whole` was asked for."""
    if of_ranges is None:
        return cal
    note = f"{what} found privately, for {of_ranges} of the total; the method has {cal.budget}"
    made = replace(  # by basic composition: with categories it is no Gaussian release
        cal,
        budget=whole,
        claimed_budget=total_budget(cal.claimed_budget, of_ranges),
        proved_budget=total_budget(cal.proved_budget, of_ranges),
        mu=None,
        details={},
        notes=(*cal.notes, note),
    )
    return made if made.proved_budget is None else made.conditional(*cal.conditions, PUBLIC_KINDS)


def joint_entry(cal: Calibration, of_ranges: Budget, call: str) -> Entry:
    """The entry of a model with its private ranges in a ledger."""
    made = add_range_cost(cal, cal.budget, of_ranges)
    total = made.proved_budget or made.claimed_budget or cal.budget
    return Entry(total, "release", made.status, made.conditions, call, person_rows=made.person_rows)
