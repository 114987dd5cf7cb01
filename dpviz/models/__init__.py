"""Models by id."""

from __future__ import annotations

import re

from dpviz.losses import HuberHinge, Logistic
from dpviz.models.base import Model, Rule, Setting
from dpviz.models.curvature import Curvature
from dpviz.models.linear import LinearModel
from dpviz.models.network import Network
from dpviz.models.rows import Batch, Rows
from dpviz.validate import one_of, whole

__all__ = [
    "MODELS",
    "MOST_UNITS",
    "Batch",
    "Curvature",
    "LinearModel",
    "Model",
    "Network",
    "Rows",
    "Rule",
    "Setting",
    "get_model",
]

MODELS: dict[str, Model] = {
    "logistic": LinearModel("logistic", "Logistic regression", Logistic()),
    "svm": LinearModel("svm", "Support vector machine (huberised, h = 0.5)", HuberHinge(0.5)),
    "mlp": Network(),
}

MOST_UNITS = 4096
_WIDE = re.compile(r"mlp-([1-9][0-9]{0,5})")


def get_model(name: str) -> Model:
    """A model by id; "mlp-32" is a network with 32 hidden units, "mlp" one with as many as the rows have features.

    Raises:
        InvalidInput: no such model, or more hidden units than `MOST_UNITS`.
    """
    wide = _WIDE.fullmatch(name) if isinstance(name, str) else None
    if wide is None:
        return MODELS[one_of("model", name, MODELS)]
    width = whole("model", int(wide[1]), 1, MOST_UNITS)
    return Network(id=name, label=f"Neural network ({width:,} hidden unit{'s' if width > 1 else ''})", width=width)
