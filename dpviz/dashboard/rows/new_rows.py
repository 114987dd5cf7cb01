"""Rows that are not trained on: how far the model would move if one of them were added."""

import numpy as np
import streamlit as st

from dpviz.dashboard.components import panels, tables
from dpviz.experiments.run.resolve import dataset_of
from dpviz.experiments.run.setup import rows_in, setup_for
from dpviz.experiments.studies.inspected import Inspected
from dpviz.influence import Influence
from dpviz.models import margins
from dpviz.reporting import words

MOST = 200


def draw(run: Inspected, influence: Influence) -> None:
    """Test rows by what adding one would change, beside what training rows change when they leave."""
    setup = setup_for(run.spec)
    ids = setup.split.test
    change = influence.added_norm(rows_in(setup.dataset, ids, setup.problem.rows.class_weights))  # as they would be trained on
    order = np.argsort(-change, kind="stable")
    below = np.searchsorted(np.sort(influence.newton_norm), change[order]) / influence.problem.n
    about = {
        "row id": ids[order],
        "change if added": change[order],
        "more than % of training rows": np.round(100 * below, 1),
        "margin without privacy": margins(setup.problem.model, influence.theta[None], setup.test)[order, 0],
    }
    shown = tables.join_readable(about, dataset_of(run.spec).frame.iloc[ids[order]])
    largest, middle = words.three(change[order[0]]), words.three(float(np.median(change)))
    roughly = "" if influence.exact_curvature else "about "
    st.markdown(
        f"None of the {len(ids):,} test rows is trained on. Adding one moves the parameters of the model without privacy by at "
        f"most {roughly}{largest}, in the median by {roughly}{middle}. Without the most influential training row they move by "
        f"{roughly}{words.three(float(influence.newton_norm.max()))}."
    )
    tables.frame(shown.head(MOST), key="new-rows", hide_index=True, height=320)
    panels.note(
        "One Newton step: |H⁻¹g|/(n(1 + h)), with h = c x'H⁻¹x/n for the curvature c of the new row's loss; the divisor n "
        "stays as where a row leaves. "
        "Kang et al. (PIDP-SGD, section 5.3) would decide by this contribution whether a new row receives noise. The "
        "decision depends on private rows, and no budget covers it."
    )
    tables.download(lambda: shown, "new-rows")
