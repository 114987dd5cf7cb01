"""The settings that the page Accounting keeps in the address."""

from typing import Any

from dpviz.dashboard.accounting import comparison, curves, ledger
from dpviz.dashboard.frame.fields import Field
from dpviz.experiments.run.spec import RunSpec


def fields_of(spec: RunSpec) -> tuple[Field[Any], ...]:
    """All of them, for a run."""
    return (comparison.compare_choice(spec), *curves.CONTROLS, ledger.RELEASES)
