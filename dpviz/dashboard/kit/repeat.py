"""How a run is repeated: from Python, from a shell, by its address."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import fields
from urllib.parse import quote, urlencode

import streamlit as st

from dpviz.dashboard.kit import words
from dpviz.experiments.spec import RunSpec


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
        st.markdown("This page's address holds the whole run; a copy of it brings anyone here:")
        st.code(address(spec), language=None, wrap_lines=True)


def python_call(spec: RunSpec) -> str:
    """The call that repeats a run: what differs from the default, and always dataset, mechanism and epsilon."""
    default = RunSpec(spec.dataset)
    always = ("dataset", "mechanism", "epsilon")
    values = {f.name: getattr(spec, f.name) for f in fields(spec)}
    knobs = spec.build().defaults()
    values["params"] = {name: value for name, value in spec.params.items() if value != knobs[name]}
    given = [f"{name}={value!r}" for name, value in values.items() if name in always or value != getattr(default, name)]
    return "import dpviz\n\nresult = dpviz.run(dpviz.RunSpec(" + ", ".join(given) + "))\nresult.accuracy.mean()"


def shell_call(spec: RunSpec) -> str:
    """The same run from a shell; what a shell would obey is quoted."""
    query = RunSpec(spec.dataset).to_query() | spec.to_query() | {"mechanism": spec.mechanism, "epsilon": str(spec.epsilon)}
    options = []
    for key, value in query.items():
        _, dot, knob = key.partition(".")
        options.append(f"--set={knob}={value}" if dot else f"--{key.replace('_', '-')}={value}")
    return shlex.join(["dpviz", "run", *options])


def address(spec: RunSpec) -> str:
    """The part of the address that holds a run, percent-encoded."""
    query = spec.to_query()
    return f"?{urlencode(query, quote_via=quote)}" if query else "/"
