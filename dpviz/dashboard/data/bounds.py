"""Accuracy with declared ranges, with those of the rows, with private ones, and with ranges too narrow and too wide."""

from dataclasses import replace

import pandas as pd
import streamlit as st

from dpviz.dashboard.components import charts, panels, repeat, tables
from dpviz.dashboard.frame.fields import Group
from dpviz.dashboard.jobs import tasks
from dpviz.datasets import Dataset
from dpviz.experiments.run.spec import RunSpec
from dpviz.figures import lines
from dpviz.figures.style import Look, Theme
from dpviz.preparing.ranges import ranges_matter
from dpviz.releasing.bounds import Compared, compare
from dpviz.reporting import pictures, words

#: the tab that holds this
TITLE = "Bounds"
_KINDS = {"declared": "declared", "read": "read from the rows", "private": "found privately"}
_LOOKS = {"declared": ("square", "declared ranges"), "private": ("diamond", "private ranges")}


def section(dataset: Dataset, spec: RunSpec, own: Group, theme: Theme) -> None:
    """Switch, picture and table."""
    if not ranges_matter(dataset):
        panels.empty("No column of this table becomes a feature by its range. Choose census-10000, for example.")
        return
    lesson = bool(st.query_params.get(panels.TASK))  # its link asks for the comparison; the picture needs the place
    if not (own["bounds"].value() if lesson else own["bounds"].draw()):
        return
    made, fresh = tasks.observe("bounds", "Training with other ranges", lambda monitor: compare(spec, monitor=monitor), of=spec)
    if made is None:
        return
    shown = tasks.last_run("bounds")
    if not fresh:
        tasks.note_before("bounds")
    if not lesson:
        _answer(made)
    _picture(made, shown, theme)
    panels.privacy_warning("All of this is computed from the rows; only the ranges that are found privately could be published.")
    _table(made)
    if made.refusal:
        panels.note(f"With {words.budget(made.of_ranges)} no private ranges were found: {made.refusal}")
    repeat.python_of(shown, "print(compare(spec).kinds)", "from dpviz.releasing.bounds import compare")


def _answer(made: Compared) -> None:
    """The comparison in a sentence."""
    found = [f"{words.percent(kind.accuracy)} with ranges {_KINDS[kind.kind]}" for kind in made.kinds.itertuples()]
    best = made.widths.loc[made.widths["accuracy"].idxmax()]
    st.markdown(
        words.sentence(
            f"Test accuracy is {', '.join(found)}. Of all widths {words.three(best['width'])} is best: "
            f"{words.percent(best['accuracy'])}."
        )
    )


def _picture(made: Compared, spec: RunSpec, theme: Theme) -> None:
    """Accuracy over the width of the ranges."""
    look, table = pictures.method_look(spec.mechanism, theme), made.widths
    free = pictures.method_look("non-private", theme)

    def accuracies(name: str, of: pd.DataFrame, look: Look, points: bool = False) -> lines.Line:
        spread = of["spread"].fillna(0)
        low, high = of["accuracy"] - spread, of["accuracy"] + spread
        return lines.Line(name, of["width"], of["accuracy"], look, points, low, high)

    drawn = [lines.Line("non-private optimum (bias alone)", table["width"], table["non_private"], free)]
    drawn.append(accuracies(look.name, table, look))
    for kind, (symbol, name) in _LOOKS.items():
        one = made.kinds[made.kinds["kind"] == kind]
        if len(one):
            drawn.append(accuracies(name, one, replace(look, symbol=symbol), points=True))
    figure = lines.curves(
        drawn,
        theme,
        x="width of the ranges (1: from the smallest to the largest value)",
        y="test accuracy",
        log_y=False,
        height=220,
        percent=True,
        ticks={2.0**k: f"{2**k}" if k >= 0 else f"1/{2**-k}" for k in range(-4, 5)},
    )
    least, most = table.iloc[0], table.iloc[-1]
    summary = " ".join(
        f"At {words.three(row['width'])} times the width of the rows’ ranges {words.percent(row['clipped'])} of the numbers are "
        f"clipped; accuracy is {words.percent(row['accuracy'])}, non-private {words.percent(row['non_private'])}."
        for row in (least, most)
    )
    charts.chart(figure, "bounds", summary, lambda: table, of=spec)


def _table(made: Compared) -> None:
    """The cost of each kind of ranges, as a table."""
    rows = []
    for kind in made.kinds.itertuples():
        private = kind.kind == "private"
        covered = (
            f"✓ for {words.budget(made.of_ranges)}"
            if private
            else f"⚠ not those of {kind.read:,} columns"
            if kind.read
            else "✓ public"
        )
        accuracy = words.percent(kind.accuracy) + ("" if kind.spread != kind.spread else f" ± {100 * kind.spread:.1f}")
        left = made.of_model if private else made.whole
        rows.append((_KINDS[kind.kind], covered, words.budget(left), words.percent(kind.clipped), accuracy))
    tables.table(rows, ("ranges", "covered by ε", "left for the model", "numbers clipped", "test accuracy"))
    st.caption(
        "Narrow ranges clip rows, which every model pays for (bias). Wide ones leave the rows close together: the differences "
        "between them are small beside the noise, and beside the regularisation that keeps it small."
    )
