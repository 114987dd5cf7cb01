"""The run that a page's controls stand for, as a job; until it is there the page shows the run before, paler."""

from contextlib import suppress

import streamlit as st

from dpviz.common.validate import InvalidInput
from dpviz.dashboard.components import recorder
from dpviz.dashboard.frame import metric
from dpviz.dashboard.jobs import tasks
from dpviz.dashboard.jobs.cached_runs import Outcome
from dpviz.experiments.run.resolve import resolve
from dpviz.experiments.run.spec import RunSpec
from dpviz.reporting import words

#: what was shown before is paler until the new run is there
_PALE = "<style>.st-key-headline, .stMain .stPlotlyChart, .stMain .dpviz-picture {opacity: .45}</style>"


def current_run(spec: RunSpec) -> tuple[Outcome | None, bool]:
    """(The outcome of a run in the chosen metric, True), or that of the run before, or None where there is none, with False."""
    last = _before()
    meanwhile = "" if last is None else f"Until then the page shows the run before: {words.title(last.spec)}."
    outcome, fresh = tasks.result_of("run", tasks.training(spec), meanwhile=meanwhile)
    outcome = outcome if fresh else last
    if not fresh and outcome is not None:
        st.html(_PALE)
        recorder.close("This run was not there when the report was saved. Save it again.")
    return (None if outcome is None else metric.measure_outcome(outcome)), fresh


def _before() -> Outcome | None:
    """The run that was shown last; None where its data has changed or gone since."""
    last: Outcome | None = tasks.last_result("run")
    with suppress(InvalidInput):
        if last is not None and last.key == resolve(last.spec).key():
            return last
    return None
