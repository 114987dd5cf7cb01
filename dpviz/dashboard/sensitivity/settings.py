"""The settings that the page Sensitivity keeps in the address."""

from typing import Any

import streamlit as st

from dpviz.dashboard.frame import fields
from dpviz.dashboard.sensitivity import excess_risk, recursion, scaling
from dpviz.experiments.run.spec import RunSpec

PARTS = {
    "none": "Nothing more",
    "training": "Where the sensitivity comes from, step by step",
    "rates": "Papers: published rates and excess risk",
}


def part() -> fields.Field[str]:
    """The part that is shown below the answer; a link that sets something of a part opens it."""
    keys = {"training": ("algorithm",), "rates": tuple(field.key for field in (*excess_risk.CONTROLS, *scaling.CONTROLS))}
    asked = [name for name, its in keys.items() if any(st.session_state.get(key) for key in its)]
    return fields.choice("part", "Look closer", PARTS, asked[0] if len(asked) == 1 else "none")


def fields_of(spec: RunSpec) -> tuple[fields.Field[Any], ...]:
    """All of them, for a run."""
    return (part(), recursion.algorithm_choice(spec), scaling.axis_field(spec), *excess_risk.CONTROLS, *scaling.CONTROLS)
