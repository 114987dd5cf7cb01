"""A model to publish from the app: the questions of `dpviz release`, and the two files that it would write."""

import uuid
from dataclasses import replace

import streamlit as st

from dpviz.common.limits import demo
from dpviz.common.progress import Monitor
from dpviz.dashboard.components import panels
from dpviz.dashboard.jobs import tasks
from dpviz.experiments.run.settings import PRIVATE, STANDARDISED
from dpviz.experiments.run.spec import RunSpec
from dpviz.mechanisms import Calibration
from dpviz.releasing import release
from dpviz.reporting import words

#: what the page asks for each switch of `dpviz release`, but for private ranges, which need a table that is named as a file
SWITCHES = {
    "all-rows": "Train on all rows, and not on 80 % of them",
    "ranges-from-data": "Publish ranges and categories that were read from the rows",
    "i-know-this-is-not-proved": "Publish a model whose guarantee is only claimed",
}
_PRESSED = "dpviz.release"  # (run, a name for the press, answers): each press trains another model


def draw(spec: RunSpec) -> None:
    """The form, and the files of the model that was released last at this run."""
    if demo():
        panels.note("A demonstration releases no model. `dpviz release` does on a machine of your own.")
        return
    st.markdown(
        "The models above have noise from a seed and **must not be published**. One that may be is trained for it, with "
        "randomness of the operating system. **Every click gives another model and spends the budget again**; a ledger that adds "
        "up what releases cost is kept by the shell (`dpviz release --ledger`)."
    )
    if spec.row_scaling == STANDARDISED:
        panels.note("A model of standardised rows is not released yet: choose another row scaling.")
        return
    if spec.ranges == PRIVATE:
        panels.note("With private ranges the shell releases a model, of a table of your own: `dpviz release table.csv`.")
        return
    with st.form("release", border=False):
        rows, looked, unproved = (st.checkbox(label) for label in SWITCHES.values())
        tried = st.number_input("Settings that were tried on these rows, for the card", 1, 10_000, value=None, step=1)
        asked = st.form_submit_button(f"Train a model and spend ε = {words.three(spec.epsilon)}")
    if asked:
        how = {"all_rows": rows, "ranges_from_data": looked, "unproved": unproved, "tried": tried}
        st.session_state[_PRESSED] = spec, uuid.uuid4().hex, how
    run, press, how = st.session_state.get(_PRESSED, (None, "", {}))
    if run != spec:
        return

    def work(monitor: Monitor) -> tuple[bytes, Calibration]:
        # the seed of the address belongs to the explorer
        made = release(replace(spec, seed=RunSpec.seed), monitor=monitor, call="the app", **how)
        return made.packed(), made.calibration

    made, fresh = tasks.observe("release", "Training a model to publish", work, of=spec, given=press)
    if fresh:
        content, cal = made
        st.success(f"Released: {cal.sentence}; proved: {cal.proved_budget or 'nothing'}. Read card.md before you publish it.")
        st.download_button("Download model.json and card.md (ZIP)", content, "model.zip", on_click="ignore", key="release-zip")
