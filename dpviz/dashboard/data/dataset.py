"""The page about data: what is trained on, what was done to it, and which sets there are."""

import time

import pandas as pd
import streamlit as st

from dpviz.common.digits import counted
from dpviz.common.validate import InvalidInput
from dpviz.dashboard.components import charts, panels, repeat, tables
from dpviz.dashboard.data import upload
from dpviz.dashboard.frame import session, sidebar
from dpviz.dashboard.jobs import tasks
from dpviz.datasets import Dataset
from dpviz.datasets.cards import Card
from dpviz.datasets.cards import cards as all_cards
from dpviz.datasets.catalogue import peek
from dpviz.datasets.sources.remote import download
from dpviz.datasets.table.cell_text import is_number
from dpviz.datasets.table.encoding import SCALINGS
from dpviz.datasets.table.sidecar import decide_spec, document
from dpviz.experiments.run.resolve import dataset_of, resolve
from dpviz.experiments.run.settings import SETTINGS
from dpviz.experiments.run.spec import RunSpec
from dpviz.figures import data
from dpviz.figures.style import Theme
from dpviz.privacy.private_ranges import shares
from dpviz.releasing.ranges import compare_ranges
from dpviz.reporting import words
from dpviz.reporting.calls import dataset_call

_SHOWN = 10
_SCALING_FORMULAS = {
    "centred": r"\frac{2}{\sqrt{k}}\,(2x_i - 1)\ \text{for numbers, then}\ x_i / \max(1, \lVert x_i \rVert_2)",
    "unit": r"x_i / \lVert x_i \rVert_2",
    "bound": r"x_i / \sqrt{k}",
    "clip": r"x_i / \max(1, \lVert x_i \rVert_2)",
    "largest": r"x_i / \max_k \lVert x_k \rVert_2",
}
_FAILED = "dpviz.download"
_STATES = {
    "here": ("✓ on this machine", "green"),
    "download": ("⬇ not downloaded", "orange"),
    "file": ("✎ bring the file", "blue"),
}


def chosen_dataset(spec: RunSpec) -> Dataset | None:
    """The dataset of the sidebar, or a panel that says why there is none."""
    try:
        return dataset_of(spec)
    except InvalidInput as problem:
        panels.failure(f"{problem.field}: {problem.cause}", problem.fix)
    except MemoryError:
        panels.failure("this set needs more memory than there is", "Choose a smaller one.")
    return None


def majority(dataset: Dataset) -> float:
    """Share of the more frequent label, over all rows."""
    return float(max((dataset.y > 0).mean(), (dataset.y < 0).mean()))


def headline(dataset: Dataset, spec: RunSpec) -> None:
    """Size, majority and what privacy will cost."""
    n, features = resolve(spec).n_train, dataset.d - dataset.intercept
    held = session.held_uploads().get(dataset.name)
    title = sidebar.dataset_label(dataset.name) if held is None else held.title
    sentence = f"{title} has {dataset.n:,} rows and {counted(features, 'feature')}; {n:,} rows are trained on."
    panels.headline(sentence, of=spec)
    if dataset.published_test is not None:
        switch = SETTINGS["published_split"].label
        tested = "These are the test rows now." if spec.published_split else f"“{switch}”, on the left, tests on them."
        aside = int(dataset.published_test.sum())
        panels.text(f"The publisher set {aside:,} of the rows aside as a test file. {tested}")


def describe(dataset: Dataset, spec: RunSpec) -> None:
    """The source of the rows, and what is known of privacy's cost by their number."""
    n = resolve(spec).n_train
    panels.note(
        f"Always guessing the majority is right for {words.percent(majority(dataset))} of all rows. "
        f"{dataset.description} Source: {dataset.source}. Privacy costs little where d/(n ε) is small: it is "
        f"{words.three(dataset.d / (n * spec.epsilon))} at ε = {words.three(spec.epsilon)} for d = {dataset.d:,} parameters. "
        f"δ must stay below 1/n = {words.three(1 / n)}."
    )


def balance(dataset: Dataset, theme: Theme) -> None:
    """Rows per class."""
    st.header("Label balance", anchor=False)
    counts = (int((dataset.y < 0).sum()), int((dataset.y > 0).sum()))
    names = dataset.label_names
    summary = f"{counts[0]:,} rows are {names[0]} (−1), {counts[1]:,} are {names[1]} (+1)."
    table = pd.DataFrame({"label": names, "rows": counts})
    charts.chart(data.label_balance(counts, names, theme), "balance", summary, lambda: table)


def first_rows(dataset: Dataset) -> None:
    """The first rows as people read them, with the kind of each column and its gaps."""
    st.header("The table", anchor=False)
    panels.privacy_warning(f"The first {_SHOWN} of {dataset.n:,} rows, as read.")
    tables.frame(dataset.frame.head(_SHOWN), width="stretch")
    numbers = sum(is_number(column) for _, column in dataset.frame.items())
    st.caption(
        f"{numbers:,} columns of numbers, {dataset.frame.shape[1] - numbers:,} of categories; "
        f"{dataset.frame.isna().any(axis=1).sum():,} rows with a gap."
    )
    tables.download(lambda: tables.join_readable({"row id": dataset.frame.index}, dataset.frame), "rows")


def encoded_rows(dataset: Dataset) -> None:
    """The first rows as they are trained on."""
    panels.privacy_warning(f"The first {_SHOWN} of {dataset.n:,} rows as the model sees them; y is the label.")
    rows = pd.DataFrame(dataset.X[:_SHOWN], columns=tables.unique_names(dataset.feature_names)).assign(
        **{"y ": dataset.y[:_SHOWN]}
    )
    tables.frame(rows.round(4), width="stretch")


def preprocessing(dataset: Dataset, spec: RunSpec) -> None:
    """The steps of preprocessing, and the values that it read."""
    panels.text(words.preprocessing(dataset.declared, any(one.id == "ranges" for one in dataset.preparations)))
    if dataset.looked_at:
        some = ", ".join(dataset.looked_at[:30]) + (", …" if len(dataset.looked_at) > 30 else "")
        st.warning(f"Read from the rows, which ε does not cover: {words.markdown(some)}.", icon="⚠️")
    held = session.held_uploads().get(dataset.name)
    if dataset.label is not None:
        st.markdown(f"**Label**: {words.markdown(dataset.label.sentence)}.")
    for remark in dataset.remarks:
        panels.warning(remark)
    for note in dataset.notes:
        st.markdown(f"- {words.markdown(note)}")
    if dataset.lost:
        st.markdown(f"**Not trained on** ({len(dataset.lost):,}): rows, columns and values left out, and rows that were clipped.")
        st.markdown("\n".join(f"- {words.markdown(one.sentence)}" for one in dataset.lost))
    with st.expander("How is this computed?"):
        st.latex(
            r"x_{ij} \leftarrow \frac{x_{ij} - \min_j}{\max_j - \min_j},\qquad x_i \leftarrow "
            + _SCALING_FORMULAS[dataset.scaling]
        )
        st.markdown(
            "Text becomes one column per value (one-hot), numbers are scaled to [0, 1] by their range. Then rows get into "
            f"the unit ball by {words.markdown(SCALINGS[dataset.scaling])} (More settings, row scaling)."
        )
        if dataset.scaling == "largest":
            st.markdown("The largest norm is read from the rows: one person can change it, and no ε covers that.")
        else:
            st.markdown("That looks at no other row, so it costs no privacy.")
        if dataset.intercept:
            st.markdown("A constant feature is added inside the unit ball, and is regularised with the rest:")
            c = "1/2" if dataset.constant < 1 else "1"
            st.latex(rf"x_i \leftarrow (x_i, c)/\sqrt{{1 + c^2}}, \quad c = {c}")
        if any(one.id == "ranges" for one in dataset.preparations):
            repeat.python_of(
                spec, "rows = dataset_of(spec)\nrows.X, rows.y", "from dpviz.experiments.run.resolve import dataset_of"
            )
        else:
            repeat.python(dataset_call(dataset.name, dataset.intercept, dataset.scaling))
        if held is not None:
            stem = "the file's name"
            st.markdown(
                f"To have it in the list of datasets, put the file into the data folder, with this beside it as {stem}.toml:"
            )
            beside = document(decide_spec(held.table.frame, held.spec, dataset), held.table.found)
            st.code(beside, language="toml", wrap_lines=True)


def ranges(dataset: Dataset, theme: Theme) -> None:
    """Features after preprocessing."""
    fig = data.feature_ranges(dataset.X, dataset.feature_names, theme)
    shown = min(data.MOST, dataset.d)
    of = f"{dataset.d:,} features" + (", the intercept included" if dataset.intercept else "")
    summary = f"The {shown} most varied of {of}: mean, and where the middle 90 % of the rows lie."
    x = dataset.X
    statistics = {"min": x.min(0), "mean": x.mean(0), "max": x.max(0), "standard deviation": x.std(0)}
    table = pd.DataFrame({"feature": dataset.feature_names} | statistics)
    charts.chart(fig, "feature-ranges", summary, lambda: table)


def private(dataset: Dataset, spec: RunSpec) -> None:
    """Ranges and categories found privately, beside those that the rows have."""
    of_ranges, of_model = shares(resolve(spec).budget)
    st.markdown(
        "**Found privately**: "
        + words.markdown(
            f"ε does not cover ranges and categories that were read from the rows. A tenth of "
            f"{words.budget(resolve(spec).budget)} finds them with noise; {words.budget(of_model)} is left for the model."
        )
    )
    table = tasks.current_result(
        "private-ranges",
        "Private ranges",
        lambda monitor: compare_ranges(dataset, of_ranges),
        given=(dataset.name, dataset.numbers_sha256, spec.split_seed, of_ranges),
        dataset=dataset.name,
        ask="Find ranges and categories privately",
    )
    if table is None:
        return
    panels.privacy_warning("The second and the last column are read from the rows; only the third one is private.")
    shown = table.assign(outside=[words.percent(share) for share in table["outside"]])
    tables.frame(shown.rename(columns={"rows": "in the rows", "outside": "rows clipped or in no category"}), width="stretch")
    st.caption(
        "A narrow range cuts off rare values (bias) and needs less noise for the others; a wide one keeps them. Values of few "
        "rows are never seen, as privacy asks."
    )
    repeat.shell("dpviz release people.csv --target income --private-ranges --out model")


def cards(spec: RunSpec) -> None:
    """Cards of all sets."""
    failed = st.session_state.pop(_FAILED, None)
    if failed is not None:
        panels.failure(f"{failed.field}: {failed.cause}", failed.fix)
    for name, mine in session.held_uploads().items():
        with st.container(border=True):
            st.markdown(f"**{words.markdown(mine.title)}**, your upload, {mine.rows:,} rows. No other session sees it.")
            columns = st.columns(2)
            columns[0].button(
                "Use it",
                key=f"use-{name}",
                on_click=st.session_state.update,
                args=({"dataset": name},),
                disabled=name == spec.dataset,
            )
            columns[1].button("Forget it now", key=f"drop-{name}", on_click=forget, args=(name,))
    entries = all_cards()
    for start in range(0, len(entries), 3):
        for column, card in zip(st.columns(3), entries[start : start + 3], strict=False):
            with column, st.container(border=True):
                _card(card, spec)


def _card(card: Card, spec: RunSpec) -> None:
    st.markdown(f"**{words.markdown(card.title)}**")
    text, colour = _STATES[card.state]
    st.badge(text, color=colour)  # type: ignore[arg-type]
    rows = f"{card.rows:,} rows" if card.rows is not None else "size known when read"
    panels.note(f"{card.variant} · {rows} · label: {card.label} · licence: {card.licence} · {card.source}")
    dataset = peek(card.name, intercept=spec.intercept) if card.name is not None and card.state == "here" else None
    if dataset is not None:
        n, d = dataset.train_size(spec.folds, spec.published_split and card.name == spec.dataset), dataset.d
        guess = words.percent(majority(dataset))
        panels.note(f"n = {n:,} trained on, d = {d:,}, majority {guess}.")
    elif card.state == "here":
        st.caption("Features and majority show when it is used.")
    if card.state == "here" and card.name is not None:
        st.button(
            "Use this set",
            key=f"use-{card.name}",
            on_click=st.session_state.update,
            args=({"dataset": card.name},),
            disabled=card.name == spec.dataset,
        )
    elif card.state == "download" and card.name is not None:
        if st.button(f"Download (about {card.megabytes} MB)", key=f"get-{card.name}"):
            _download(card)
    else:
        with st.expander("How to get it"):
            for k, step in enumerate(card.steps, 1):
                st.markdown(f"{k}. {words.markdown(step)}")


def _download(card: Card) -> None:
    assert card.name is not None
    bar, start = st.progress(0.0, "Asking the server"), time.monotonic()

    def progress(size: int) -> None:
        share = min(size / (card.megabytes * 1e6), 0.99)
        bar.progress(share, f"{size / 1e6:.1f} MB after {time.monotonic() - start:.0f} s; moving any control cancels")

    try:
        download(card.name, progress)
    except InvalidInput as problem:
        st.session_state[_FAILED] = problem.bare()
    st.rerun()


def forget(name: str) -> None:
    """Forgets an upload and the table that it was made of; the sidebar goes back to the default where it showed it."""
    upload.forget(name)
    if st.session_state.get("dataset") == name:
        st.session_state["dataset"] = RunSpec.dataset
