"""One row before and after noise; for methods that put none on rows, what they add it to."""

import numpy as np
import pandas as pd
import streamlit as st

from dpviz.dashboard.components import charts, panels, tables
from dpviz.dashboard.rows import selection
from dpviz.dashboard.rows.selection import Chosen
from dpviz.datasets import Dataset
from dpviz.datasets.table.units import Units
from dpviz.experiments.run.resolve import dataset_of
from dpviz.experiments.run.spec import RunSpec
from dpviz.experiments.studies import inspected
from dpviz.experiments.studies.inspected import Inspected
from dpviz.figures import rows_with_noise
from dpviz.figures.style import Theme
from dpviz.influence import Influence
from dpviz.mechanisms import NoisesRows, list_mechanisms
from dpviz.reporting import words


def draw(run: Inspected, influence: Influence, chosen: Chosen, theme: Theme) -> None:
    """The row before and after noise, a draw at a time; nothing for methods that put none on rows."""
    i = chosen.person
    draws = run.spec.seeds
    first = 0 if run.first is None else max(int(run.first[i]), 0)
    mechanism = run.spec.build()
    released = mechanism.rows_in_words(influence.problem.setting) if isinstance(mechanism, NoisesRows) else ""
    if not isinstance(mechanism, NoisesRows):
        return
    st.header("This row in the table with noise (D_priv)", anchor=False)
    replica = first
    if draws > 1:
        replica = int(st.slider("Noise draw", 1, draws, first + 1, key=f"draw-{run.row_ids[i]}")) - 1
    after = inspected.noisy_rows(run.spec, replica)
    if after is None:
        panels.empty(released or "This form of the method reports no row.")
        return
    if released:
        panels.note(released)
    dataset, row_id = dataset_of(run.spec), int(run.row_ids[i])
    changed = np.flatnonzero((dataset.X[run.row_ids] != after).any(axis=1))
    share = f"{len(changed):,} of {len(after):,} rows ({words.percent(len(changed) / len(after))}) differ from the original"
    if np.array_equal(dataset.X[row_id], after[i]):
        panels.empty(f"Row {row_id} is the original row in noise draw {replica + 1}: {share}.")
        if len(changed):
            other = int(run.row_ids[influence.order[np.isin(influence.order, changed)][0]])
            st.button(f"Show row {other}, the most influential of those", on_click=selection.set_person, args=(other,))
        return
    panels.text(f"In noise draw {replica + 1} {share}.")
    _change(run.spec, dataset, row_id, after[i], theme)


def _change(spec: RunSpec, dataset: Dataset, row_id: int, noisy: np.ndarray, theme: Theme) -> None:
    """A row beside the same row after noise: a picture, a sentence and the features that moved most."""
    before, units = dataset.X[row_id], Units(dataset)
    texts = units.read(row_id, before), units.read(row_id, noisy)
    data = pd.DataFrame(
        {
            "feature": dataset.feature_names,
            "before": before,
            "after": noisy,
            "before, own units": texts[0],
            "after, own units": texts[1],
        }
    )
    moved, norm, image = int(np.abs(noisy - before).argmax()), float(np.linalg.norm(noisy - before)), units.image
    far = "Noise more than one range of the row beyond it is black or white." if image else "Hovering shows the data's own units."
    summary = (
        f"Row {row_id} moved by {words.three(norm)}; rows have a norm of at most 1. The feature that moved most is "
        f"{dataset.feature_names[moved]}: from {texts[0][moved]} to {texts[1][moved]}. {far}"
    )
    if image is not None:
        pixels = image[0] * image[1]
        fig = rows_with_noise.pictures(before[:pixels].reshape(image), noisy[:pixels].reshape(image), theme)
    else:
        fig = rows_with_noise.row_before_after(before, noisy, dataset.feature_names, theme, texts=texts)
    charts.chart(fig, "before-after", summary, lambda: data, rows=True, of=spec)
    if image is None:
        order = np.argsort(-np.abs(noisy - before), kind="stable")[:8]
        tables.table(
            [(dataset.feature_names[j], texts[0][j], texts[1][j]) for j in order],
            ("moved most, own units", "before", "after"),
            real=True,
        )


def one_step(run: Inspected, theme: Theme) -> None:
    """The quantity that a method adds its noise to, before and after, where that is no row."""
    cal = run.calibration
    st.subheader("One step before and after noise", anchor=False)
    trained = list_mechanisms()[run.spec.mechanism].family == "output"
    on = "the trained parameters" if trained else "a sum over all rows"
    equally = f"**Every row is covered equally**: the noise goes on {on}, whatever a row's influence."
    st.markdown(equally if cal.noise_scale > 0 else "**No row is covered**: this method adds no noise.")
    table = inspected.one_step(run.spec)
    if table is None:
        where = list_mechanisms()[run.spec.mechanism].noise_enters
        panels.empty(f"There is no single step to draw. {words.markdown(where)}")
        return
    names = dataset_of(run.spec).feature_names
    if len(names) != len(table):
        names = tuple(f"parameter {k + 1}" for k in range(len(table)))
    before, after = table["before"].to_numpy(), table.drop(columns="before").to_numpy().T
    fig = rows_with_noise.step_before_after(before, after, names, theme, title="value")
    summary = (
        f"The noise is added to {cal.query}{'' if trained else ', here at parameters 0'}. Before noise its norm is "
        f"{words.three(float(np.linalg.norm(before)))}; the noise has norm "
        f"{words.three(float(np.linalg.norm(after - before, axis=1).mean()))} on average over {len(after)} draws."
    )
    charts.chart(fig, "one-step", summary, lambda: table.assign(coordinate=names), of=run.spec)
