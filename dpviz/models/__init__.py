"""Models by id."""

import re

from dpviz.common.validate import InvalidInput, check_choice, show
from dpviz.models.base import Model, Rule, Setting, count, derivatives_of, feature_noise_of, line_losses_of, margins, regulariser
from dpviz.models.capabilities import Ability, Curvature, Derivatives, Noise
from dpviz.models.linear import LinearModel
from dpviz.models.losses import HuberHinge, Logistic
from dpviz.models.network import STARTS, Network
from dpviz.models.rows import Batch, Rows

MODELS: dict[str, Model] = {
    "logistic": LinearModel("logistic", "Logistic regression", Logistic()),
    "svm": LinearModel("svm", "Support vector machine (huberised, h = 0.5)", HuberHinge(0.5)),
    "mlp": Network(),
}

MOST_UNITS = 4096
_WIDTHS = f'Write "mlp-32" for 32 hidden units (1 to {MOST_UNITS}), or "mlp" for as many as the rows have features.'
_WIDE = re.compile(r"mlp-([1-9][0-9]{0,5})")


def get_model(name: str) -> Model:
    """A model by id; "mlp-32" is a network with 32 hidden units, "mlp" one with as many as the rows have features.

    Raises:
        InvalidInput: no such model, or more hidden units than `MOST_UNITS`.

    >>> get_model("mlp-32").label
    'Neural network (32 hidden units)'
    """
    wide = _WIDE.fullmatch(name) if isinstance(name, str) else None
    if wide is None:
        if isinstance(name, str) and name.startswith("mlp-"):
            raise InvalidInput("model", f"{show(name)} names no number of hidden units", _WIDTHS)
        return MODELS[check_choice("model", name, MODELS)]
    width = int(wide[1])
    if width > MOST_UNITS:
        raise InvalidInput("model", f"{width:,} hidden units are more than {MOST_UNITS}", _WIDTHS)
    return Network(id=name, label=f"Neural network ({width:,} hidden unit{'s' if width > 1 else ''})", width=width)
