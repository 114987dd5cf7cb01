"""Shared parts of publications with open constants: their knobs, the nominal gradient bound, and notes on it."""

from typing import Any

import numpy as np

from dpviz.mechanisms.knobs import Number, declare
from dpviz.models import Setting

#: why delta = 0 is refused, and what to do
INFINITE = "the published noise is infinite at delta = 0", "Choose delta > 0."


class NoiseConstant(Number):
    """A constant of a published noise formula: it decides how much noise is claimed to be enough."""


def open_constant_knob(where: str = "", high: float = 10_000.0) -> Any:
    """The constant c that a publication leaves open."""
    words: str = f"The constant that the publication leaves open{where}."
    return declare(1.0, NoiseConstant(label="Constant c", help=words, low=0.01, high=high, log=True))


def gradient_bound_knob() -> Any:
    """The gradient bound G of a published formula, for models that have none."""
    words: str = "The formula's gradient bound where the model has none; linear models use their own, 1."
    return declare(1.0, NoiseConstant(label="Nominal G", help=words, low=0.01, high=100.0, log=True))


def nominal_gradient_bound(setting: Setting, nominal: float) -> float:
    """The G of a published formula: the model's bound where there is one, else the knob's nominal value."""
    return setting.G if np.isfinite(setting.G) else nominal


def unbounded_note(setting: Setting, nominal: float) -> tuple[str, ...]:
    """Said where the model has no bound on its gradients."""
    if np.isfinite(setting.G):
        return ()
    return (f"This model's gradients have no bound; the formula uses the nominal G = {nominal:g}.",)
