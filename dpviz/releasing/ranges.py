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
from dpviz.datasets.table.gaps import with_gaps
from dpviz.experiments.run.spec import RunSpec
from dpviz.mechanisms import Calibration
from dpviz.mechanisms.persons import of_row
from dpviz.privacy.budget import Budget
from dpviz.spending.ledger import Entry
from dpviz.spending.private_ranges import private_ranges, together

#: what a proof supposes where ranges are found privately
PUBLIC_KINDS = "public: which columns hold numbers and which hold categories"


def texts_of(frame: pd.DataFrame, names: Sequence[str]) -> dict[str, pd.Series]:
    """Columns of categories as texts, gaps left as they are."""
    return {name: frame[name].map(word, na_action="ignore").astype(object) for name in names}


def undeclared(dataset: Dataset) -> tuple[list[str], list[str]]:
    """(columns of numbers, columns of categories) whose range or categories were read from the rows.

    Raises:
        InvalidInput: the rows are no table of one's own, all is declared, or columns were chosen by their values, which no range
            can mend.
    """
    if not own.is_own(dataset.name) or dataset.encoder is None:
        raise InvalidInput("ranges", "are found privately in tables of your own", "Name a file, or use dpviz.dataset(...).")
    if dataset.person_rows:
        cause = "are found privately from all rows, and the table names persons with several"
        raise InvalidInput("ranges", cause, "Declare them, or leave out the person.")
    if not dataset.looked_at:
        raise InvalidInput("ranges", "are declared already, so none is to be found", "Leave out private ranges.")
    kinds = {c.name: c.kind for c in dataset.encoder.columns if c.name in dataset.looked_at}
    chosen = [name for name in dataset.looked_at if name not in kinds]
    if chosen:
        cause = f"{', '.join(chosen[:3])} were left out because of their values"
        raise InvalidInput("columns", f"{cause}, which private ranges cannot mend", "Name the features with columns (--columns).")
    return [n for n, kind in kinds.items() if kind == NUMBER], [n for n, kind in kinds.items() if kind != NUMBER]


def declared_privately(spec: RunSpec, dataset: Dataset, budget: Budget, source: random.Random) -> RunSpec:
    """The run on the same rows, whose undeclared ranges and categories are now private ones.

    Args:
        spec: a run on a table of one's own.
        dataset: of that run.
        budget: of all ranges and categories together.
        source: of their noise.

    Raises:
        InvalidInput: see `undeclared`; or nothing can be seen at this budget.
    """
    numbers, categories = undeclared(dataset)
    content = own.get(spec.dataset)
    frame = with_gaps(content.frame, content.spec, [])
    values = {name: frame[name].to_numpy(float) for name in numbers}
    found = private_ranges(values, budget, source, categories=texts_of(frame, categories))
    table = replace(
        content.spec,
        ranges={**content.spec.ranges, **found.ranges},
        categories={**content.spec.categories, **found.categories},
        proposed=tuple(name for name in content.spec.proposed if name not in (*numbers, *categories)),
    )
    return replace(spec, dataset=own.hold(replace(content, spec=table)))


def beside(dataset: Dataset, budget: Budget) -> pd.DataFrame:
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
    found = private_ranges(numbers, of_row(budget, max(1, dataset.person_rows)), categories=texts)
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


def with_ranges(cal: Calibration, whole: Budget, of_ranges: Budget | None) -> Calibration:
    """The calibration of a model with the cost of its private ranges; `whole` was asked for."""
    if of_ranges is None:
        return cal
    found = f"ranges and categories were found privately, for {of_ranges} of the total"
    claimed, proved = (together(budget, of_ranges) for budget in (cal.claimed_budget, cal.proved_budget))
    made = replace(
        cal, budget=whole, claimed_budget=claimed, proved_budget=proved, mu=None, details={}, notes=(*cal.notes, found)
    )
    return made if proved is None else made.conditional(*cal.conditions, PUBLIC_KINDS)


def of_both(cal: Calibration, of_ranges: Budget, call: str) -> Entry:
    """The entry of a model with its private ranges in a ledger."""
    made = with_ranges(cal, cal.budget, of_ranges)
    total = made.proved_budget or made.claimed_budget or cal.budget
    return Entry(total, "release", made.status, made.conditions, call)
