"""The choice of the columns of a table that are features."""

import pandas as pd

from dpviz.common.validate import InvalidInput, check_choice, show
from dpviz.datasets.table.columns import objection, obstacle
from dpviz.datasets.table.spec import TableSpec

PERSON = "names the person"


def features_of(frame: pd.DataFrame, spec: TableSpec, every_column: bool) -> tuple[list[str], dict[str, str]]:
    """(columns that are features, why each other one is not).

    Args:
        every_column: a column is a feature wherever it can be one.

    Raises:
        InvalidInput: the spec names a column that is not there or cannot be used, or no column is left.
    """
    names = [str(c) for c in frame.columns]
    declared = {"ranges": spec.ranges, "categories": spec.categories, "defaults": spec.defaults, "drop": spec.drop}
    for field_name, columns in (declared | {"missing": spec.missing_in, "proposed": spec.proposed}).items():
        for column in columns:
            check_choice(f"{field_name}[{show(column)}]", column, names)
            if column == spec.target and field_name not in ("drop", "missing", "categories"):
                raise InvalidInput(f"{field_name}[{show(column)}]", "names the label, for which it does nothing", "Leave it out.")
    left_out: dict[str, str] = {}
    if spec.person:
        check_choice("person", spec.person, names)
        if spec.person == spec.target or spec.person in (spec.columns or ()):
            what = "the label" if spec.person == spec.target else "a feature"
            raise InvalidInput("person", f"{show(spec.person)} names the person and cannot be {what} as well", "Choose another.")
    if spec.columns is not None and spec.drop:
        raise InvalidInput("drop", "is given together with columns", "Give one of them.")
    if spec.target in spec.drop:
        raise InvalidInput("drop", f"names the label {spec.target!r}", "Leave it out.")
    if spec.columns is None:
        features = []
        for column in names:
            if column == spec.target:
                continue
            reason = _reason(frame[column], spec, every_column)
            if reason is None:
                features.append(column)
            else:
                left_out[column] = reason
    else:
        features = list(spec.columns)
        for column in features:
            check_choice("columns", column, names)
            if column == spec.target:
                raise InvalidInput("columns", f"the label {column!r} is among the features", "Leave it out.")
            reason = obstacle(frame[column], declared=column in spec.categories)
            if reason is not None:
                raise InvalidInput(column, reason, "Leave this column out.")
        if len(set(features)) < len(features):
            raise InvalidInput("columns", "a column is given twice", "Give each column once.")
        for column in names:
            if column not in features and column != spec.target:
                reason = default_reason(frame[column], spec)
                left_out[column] = PERSON if column == spec.person else f"not chosen; it {reason}" if reason else "not chosen"
    if not features and spec.columns is not None:
        raise InvalidInput("columns", "none was chosen", "Choose at least one column.")
    if not features:
        why = "; ".join(f"{show(c)} {reason}" for c, reason in list(left_out.items())[:3])
        fix = "Choose columns with numbers or a few categories, or a value for their gaps."
        raise InvalidInput("columns", f"none can be used as a feature ({why})", fix)
    return features, left_out


def _reason(series: pd.Series, spec: TableSpec, every_column: bool) -> str | None:
    column = str(series.name)
    if column == spec.person:
        return PERSON
    if column in spec.drop:
        return "dropped by the settings"
    return obstacle(series, declared=column in spec.categories) if every_column else default_reason(series, spec)


def default_reason(series: pd.Series, spec: TableSpec) -> str | None:
    """The reason for which a column is not a feature by default, or None."""
    column = str(series.name)
    reason = obstacle(series, declared=column in spec.categories)
    if reason is not None or column in spec.categories or column in spec.ranges or column in spec.defaults:
        return reason  # what is declared about is wanted
    return objection(series)
