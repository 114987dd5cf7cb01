"""How a run is repeated: from Python, from a shell, by its address."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from dpviz.dashboard.kit import words
from dpviz.experiments.spec import RunSpec
from dpviz.reporting.calls import address, python_call, shell_call


def computed(spec: RunSpec, formulas: Sequence[str] = (), sources: Sequence[str] = ()) -> None:
    """ "How is this computed", folded away: formula, source and the calls that repeat the numbers."""
    with st.expander("How is this computed?"):
        for formula in formulas:
            st.latex(formula)
        for source in sources:
            st.markdown(words.markdown(source))
        st.markdown("The same numbers from Python:")
        st.code(python_call(spec), language="python", wrap_lines=True)
        st.markdown("From a shell:")
        st.code(shell_call(spec), language="bash", wrap_lines=True)
        st.markdown(
            "A model from here must not be published: its noise comes from a seed. This trains one with fresh randomness, "
            "which may be published with its card:"
        )
        st.code(f"{shell_call(spec, 'release')} --out=model/", language="bash", wrap_lines=True)
        st.markdown("This page's address holds the whole run; a copy of it brings anyone here:")
        st.code(address(spec), language=None, wrap_lines=True)
