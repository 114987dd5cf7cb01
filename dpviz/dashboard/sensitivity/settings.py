"""The settings that the page Sensitivity and rates keeps in the address."""

from __future__ import annotations

from typing import Any

from dpviz.dashboard.sensitivity import excess_risk, rates, recursion, scaling
from dpviz.dashboard.shell.fields import Field
from dpviz.experiments.spec import RunSpec


def of(spec: RunSpec) -> tuple[Field[Any], ...]:
    """All of them, for a run."""
    return (recursion.algorithm_choice(spec), scaling.over_choice(spec), *excess_risk.CONTROLS, *rates.CONTROLS)
