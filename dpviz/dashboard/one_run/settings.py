"""The page's fields in the address: training step by step, and the run that is kept."""

from typing import Any

from dpviz.dashboard.frame import fields
from dpviz.dashboard.frame.fields import Field
from dpviz.dashboard.frame.pinned import PINNED
from dpviz.experiments.run.spec import RunSpec

TRAINING = fields.flag("training", "Training, step by step", "The decision lines after each step of training.")


def fields_of(spec: RunSpec) -> tuple[Field[Any], ...]:
    """All of them."""
    return TRAINING, PINNED
