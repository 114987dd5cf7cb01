"""Ways to repeat a run: from Python, from a shell, by its address."""

from collections.abc import Sequence

import streamlit as st

from dpviz.dashboard.components import folds, panels, recorder
from dpviz.experiments.run.metrics import METRICS
from dpviz.experiments.run.spec import RunSpec
from dpviz.reporting.calls import address, python_call, shell_call, with_spec


def python(code: str) -> None:
    """Python code that repeats what the page shows. It must run as it stands; a test runs all of it."""
    recorder.code(code, "python")
    if not folds.in_closed_fold():
        st.code(code, language="python", wrap_lines=True)


def python_of(spec: RunSpec, code: str, *imports: str) -> None:
    """The same about a run: `code` may use `spec`."""
    python(with_spec(spec, code, *imports))


def shell(code: str) -> None:
    """A command that repeats what the page shows."""
    recorder.code(code, "bash")
    if not folds.in_closed_fold():
        st.code(code, language="bash", wrap_lines=True)


def computation(spec: RunSpec, formulas: Sequence[str], sources: Sequence[str], metric: str = METRICS["accuracy"].id) -> None:
    """ "How is this computed", folded away: formula, source and the calls that repeat the numbers, in a metric."""
    with folds.fold("How is this computed?", "computed"):
        if folds.in_closed_fold():
            python(python_call(spec, metric))
            shell(shell_call(spec, metric=metric))
            return
        for formula in formulas:
            st.latex(formula)
        for source in sources:
            panels.text(source)
        st.markdown("The same numbers from Python:")
        python(python_call(spec, metric))
        st.markdown("From a shell:")
        shell(shell_call(spec, metric=metric))
        st.markdown(
            "A model from here must not be published: its noise comes from a seed. This trains one with fresh randomness, "
            "which may be published with its card:"
        )
        st.code(f"{shell_call(spec, 'release')} --out=model/", language="bash", wrap_lines=True)
        st.markdown("This page's address holds the whole run; a copy of it brings anyone here:")
        st.code(address(spec), language=None, wrap_lines=True)
